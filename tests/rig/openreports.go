package rig

import _ "embed"

// OpenReports is as much of the definition of OpenReports as is needed to store
// its reports.
//
//go:embed openreports.yaml
var OpenReports string
