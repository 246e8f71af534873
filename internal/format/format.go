// Package format has the versions of everything that Passbook writes, and opens state directories.
//
// A release writes one version of each format. It refuses to write where another release has written another version.
// The steps of [Directories] are the only upgrades; there are none yet.
package format

import (
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Version is the version of one format.
type Version struct {
	File    string `json:"file"`
	Version int    `json:"version"`
}

// All returns the versions that this program writes. Lines of events.jsonl have none, but the state they fold into
// does.
func All() []Version {
	return []Version{
		{rundir.ClaimFile, run.ClaimVersion}, {rundir.EventsFile, run.StateVersion},
		{rundir.MetaFile, rundir.MetaVersion},
		{rundir.StateFile, rundir.StateSchema}, {rundir.PlanFile, pipeline.PlanVersion},
		{"segments", rundir.SegmentVersion}, {"state directory", State().Version()},
	}
}
