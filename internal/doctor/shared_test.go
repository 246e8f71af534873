package doctor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/doctor"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/pipeline"
)

func TestExamineNamesWhatNoWorkerHas(t *testing.T) {
	o := options(t)
	o.Settings.Store, o.Settings.Recheck = "s3://mine", 10*time.Second
	o.Agents = []pipeline.Agent{{Run: []string{"claude"}}}
	f := well(t, o)
	mine, theirs := contract.StoreQueue("passbook", "s3://mine"), contract.StoreQueue("passbook", "s3://theirs")
	for _, q := range []string{mine, mine + "-calls", mine + "-calls-claude", theirs, theirs + "-calls"} {
		f.polled[q] = "1@elsewhere@"
	}
	f.needs = []operations.Needs{
		{Queue: theirs, Store: "s3://theirs", Programs: []string{"codex"}},
		{Queue: theirs, Store: "s3://theirs", Programs: []string{"codex"}},
		{Queue: contract.StoreQueue("other", "s3://x"), Store: "s3://x"},
	}
	at(t, f)
	c := find(t, doctor.Examine(t.Context(), o), "shared stores")
	require.Equal(t, doctor.Problem, c.State)
	require.Equal(t, "no worker that reaches the store s3://theirs has the program codex; what needs it waits",
		c.Detail)
	require.Contains(t, c.Fix, "starter worker")

	f.polled[theirs+"-calls-codex"] = "1@elsewhere@"
	require.Equal(t, doctor.OK, find(t, doctor.Examine(t.Context(), o), "shared stores").State)

	delete(f.polled, mine)
	require.Equal(t, "no worker reaches the store s3://mine; what needs it waits",
		find(t, doctor.Examine(t.Context(), o), "shared stores").Detail)
}

func TestExamineShowsCapabilitiesOfTheWorker(t *testing.T) {
	o := options(t)
	at(t, well(t, o))
	self, err := process.Self()
	require.NoError(t, err)
	c := local.Capabilities{Process: self, Stores: []local.Capability{{Name: "s3://a"},
		{Name: "s3://b", Missing: "no credentials"}}}
	require.NoError(t, local.AnnounceCapabilities(o.Settings.StateDir, c))
	got := find(t, doctor.Examine(t.Context(), o), "capabilities")
	require.Equal(t, doctor.Problem, got.State)
	require.Contains(t, got.Detail, "does not reach the store s3://b, and takes no work of its runs: no credentials")
}
