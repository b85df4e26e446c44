package main

import (
	"context"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	critest "k8s.io/cri-api/pkg/apis/testing"
)

// rayfitUser is the user of Rayfit's image, the usual "nonroot".
const rayfitUser = 65532

// images is an image service that has every image at once, after a "pull" that
// keeps the name only.
type images struct{ *critest.FakeImageService }

// ImageStatus adds the user, which the kubelet reads for runAsNonRoot.
func (i images) ImageStatus(ctx context.Context, image *cri.ImageSpec, verbose bool) (*cri.ImageStatusResponse, error) {
	response, err := i.FakeImageService.ImageStatus(ctx, image, verbose)
	if err == nil && response.Image != nil && isRayfit(image) {
		response.Image.Uid = &cri.Int64Value{Value: rayfitUser}
	}
	return response, err
}
