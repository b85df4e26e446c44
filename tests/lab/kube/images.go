package main

import (
	"context"
	"errors"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	critest "k8s.io/cri-api/pkg/apis/testing"
)

// rayfitUser is the user of Rayfit's image, the usual "nonroot".
const rayfitUser = 65532

// absentRegistry is the registry that has no image, so that pulls from it fail.
const absentRegistry = "absent.example/"

// images is an image service that has every image at once, after a "pull" that
// keeps the name only, but for those of absentRegistry.
type images struct{ *critest.FakeImageService }

// ImageStatus adds the user, which the kubelet reads for runAsNonRoot.
func (i images) ImageStatus(ctx context.Context, image *cri.ImageSpec, verbose bool) (*cri.ImageStatusResponse, error) {
	response, err := i.FakeImageService.ImageStatus(ctx, image, verbose)
	if err == nil && response.Image != nil && isRayfit(image) {
		response.Image.Uid = &cri.Int64Value{Value: rayfitUser}
	}
	return response, err
}

func (i images) PullImage(ctx context.Context, image *cri.ImageSpec, auth *cri.AuthConfig, sandbox *cri.PodSandboxConfig) (string, error) {
	if strings.HasPrefix(image.Image, absentRegistry) {
		return "", errors.New("no such image: " + image.Image)
	}
	return i.FakeImageService.PullImage(ctx, image, auth, sandbox)
}
