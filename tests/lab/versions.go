package lab

import (
	"cmp"
	"os"
	"path/filepath"
)

// The versions of everything real in the lab. Each Go module under this folder
// pins the same version in its go.mod; TestVersionsAgree compares them, so that
// messages and documentation cannot drift from what is built.
const (
	KubernetesVersion = "1.37.2"
	KubeRayVersion    = "1.6.2"
	// OlderKubeRayVersion is the oldest whose autoscaler may resize pods, for LAB_KUBERAY.
	OlderKubeRayVersion = "1.5.1"
	CertManagerVersion  = "1.21.2"
	KueueVersion        = "0.19.2"
	VPAVersion          = "1.8.1"
	KarpenterVersion    = "1.14.1"
	GatewayAPIVersion   = "1.4.1"
	RayVersion          = "2.60.0"
	HelmVersion         = "4.3.1"
	// LocustVersion is the one that KubeRay's tests ask for.
	LocustVersion = "2.32.10"
	// TqdmVersion is that of a package that Ray's images have besides.
	TqdmVersion = "4.67.1"
	// RedisliteVersion is that of the package; the Redis in it is 6.2.
	RedisliteVersion = "6.2.912183"
)

// Go modules whose files (CRDs, samples) the lab reads, for [Module].
const (
	KubeRayModule     = "github.com/ray-project/kuberay/ray-operator"
	CertManagerModule = "github.com/cert-manager/cert-manager"
	VPAModule         = "k8s.io/autoscaler/vertical-pod-autoscaler"
	KarpenterModule   = "sigs.k8s.io/karpenter"
	HelmModule        = "helm.sh/helm/v4"
	KueueModule       = "sigs.k8s.io/kueue"
	// GatewayAPIModule is the one that the operator depends on.
	GatewayAPIModule = "sigs.k8s.io/gateway-api"
)

// KubeRay is the version of the operator: KubeRayVersion, or OlderKubeRayVersion where
// the variable LAB_KUBERAY says so. For a version whose module is not to be had it is
// a folder: KubeRay's own `ray-operator`, with the program in bin/manager.
func KubeRay() string {
	return cmp.Or(os.Getenv("LAB_KUBERAY"), KubeRayVersion)
}

// builtOperator is that folder, if there is one.
func builtOperator() (folder string, given bool) {
	return KubeRay(), filepath.IsAbs(KubeRay())
}

// operatorFolder is the folder with the module of the operator.
func operatorFolder() string {
	if KubeRay() == KubeRayVersion {
		return "operator"
	}
	return "operator-" + KubeRay()
}
