// Package install tests Rayfit as a cluster admin meets it: installed from its
// own manifests, with either way of making certificates, rotated, upgraded and
// uninstalled while people go on writing Ray objects, and shown by the demo.
//
// The tests share one lab and follow each other, each with an install of its
// own. Nothing is rewired: the API server reaches the webhooks through their
// Service, and pods run the binary that RAYFIT_BIN names.
package install
