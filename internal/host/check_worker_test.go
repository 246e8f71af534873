package host_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/awake"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/workflows/contract"
)

func TestExamineNamesWhatNoWorkerHas(t *testing.T) {
	o := doctorOptions(t)
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
	address := at(t, f)
	shared := func(row string) string {
		return text(row, find(t, host.Examine(t.Context(), o), "shared stores"), address, "ADDRESS",
			o.Settings.StateDir, "STATE")
	}
	all := shared("no program")
	f.polled[theirs+"-calls-codex"] = "1@elsewhere@"
	all += shared("all")
	delete(f.polled, mine)
	testenv.Golden(t, *update, "shared", all+shared("no worker"))
}

func TestExamineShowsCapabilitiesOfTheWorker(t *testing.T) {
	o := doctorOptions(t)
	at(t, well(t, o))
	self, err := process.Self()
	require.NoError(t, err)
	c := host.Capabilities{Process: self, Stores: []host.Capability{{Name: "s3://a"},
		{Name: "s3://b", Missing: "no credentials"}}}
	require.NoError(t, host.AnnounceCapabilities(o.Settings.StateDir, c))
	testenv.Golden(t, *update, "capabilities",
		text("capabilities", find(t, host.Examine(t.Context(), o), "capabilities")))
}

func TestKeepAwake(t *testing.T) {
	name := awake.Program()
	if name == "" {
		t.Skip("this system has no inhibitor")
	}
	for _, row := range []struct {
		name, script string
		keep         bool
		state        host.CheckState
		detail       string
	}{
		{"off", "exit 1", false, host.OK, "calls do not keep this machine awake, as the settings say"},
		{"on", "exit 0", true, host.OK, name + " keeps this machine awake while calls run"},
		{"refused", "echo Access denied >&2; exit 1", true, host.Warning,
			"this machine may sleep while calls run: " + name + ": Access denied (exit status 1)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := doctorOptions(t)
			o.Settings.KeepAwake = row.keep
			program(t, name, row.script)
			check := find(t, host.Examine(t.Context(), o), "keep awake")
			require.Equal(t, row.state, check.State)
			require.Equal(t, row.detail, check.Detail)
			require.Equal(t, row.state == host.Warning, check.Fix != "")
		})
	}
}
