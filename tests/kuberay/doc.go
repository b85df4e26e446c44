// Command kuberay runs KubeRay's own end-to-end suites, as the operator's module
// has them, in a lab whose clusters are scaled by Ray's autoscaler, and in labs
// with an install of Rayfit and a RayPolicy that gives all clusters one of its
// modes. A table says which tests pass where; a part of docs/integrations.md is
// that table.
//
// Nothing in the tests is changed. Their own variables tell them the version of
// Ray, and that this machine takes longer than theirs.
package main
