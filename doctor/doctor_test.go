package doctor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/doctor"
	"github.com/passbook-run/passbook/environ"
	"github.com/passbook-run/passbook/local"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/volume"
	"github.com/passbook-run/passbook/workflows"
)

const (
	isOpen     = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	terminated = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
)

// options of a machine with nothing on it: no browser, no agent.
func options(t *testing.T) doctor.Options {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", filepath.Join(dir, "bin"))
	return doctor.Options{
		Settings: config.Settings{
			StateDir: filepath.Join(dir, "state"), RunRoot: filepath.Join(dir, "runs"), Store: "file://" + dir + "/state/store", TaskQueue: "passbook",
			Browser: "/no/browser", Server: "/no/server",
		},
		Program: "starter", Version: "v1", Build: "this", Agents: []pipeline.Agent{{Run: []string{"scripted"}}},
	}
}

// well is a server with nothing wrong; this machine's queues are polled.
func well(t *testing.T, o doctor.Options) *frontend {
	t.Helper()
	host, err := local.HostID(o.Settings.StateDir)
	require.NoError(t, err)
	polled := map[string]string{}
	for _, q := range []string{"passbook-dir-" + host, "passbook-calls-" + host} {
		polled[q] = "1@elsewhere@"
	}
	return &frontend{keeps: 90 * 24 * time.Hour, attributes: workflows.Attributes(), polled: polled, runs: map[string]workflow{}}
}

func find(t *testing.T, r doctor.Report, name string) doctor.Check {
	t.Helper()
	i := slices.IndexFunc(r.Checks, func(c doctor.Check) bool { return c.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s in %+v", name, r.Checks)
	return r.Checks[i]
}

func TestAllIsWell(t *testing.T) {
	o := options(t)
	o.Settings.Browser = fakeBrowser(t)
	address := at(t, well(t, o))
	r := doctor.Examine(t.Context(), o)
	for _, want := range []doctor.Check{
		{Area: "server", Name: "server", State: doctor.OK, Detail: "Temporal 1.2.3 at " + address + " (TEMPORAL_ADDRESS or profile)"},
		{Area: "server", Name: "namespace", State: doctor.OK, Detail: "default keeps runs that are over for 90 days"},
		{Area: "server", Name: "attributes", State: doctor.OK, Detail: "all 7 search attributes are known"},
		{Area: "server", Name: "clock", State: doctor.OK, Detail: "the server is on this machine"},
		{Area: "worker", Name: "queues", State: doctor.OK, Detail: "both queues of this machine are polled, by 1 in all"},
		{Area: "agents", Name: "scripted", State: doctor.OK, Detail: "built in"},
		{Area: "runs", Name: "runs", State: doctor.OK, Detail: "no run of this machine is open"},
	} {
		require.Contains(t, r.Checks, want)
	}
	require.Contains(t, find(t, r, "state").Detail, o.Settings.StateDir+" is writable")
	browser := find(t, r, "browser")
	require.Equal(t, doctor.Warning, browser.State, "a program that is no browser")
	require.Contains(t, browser.Detail, "Fake 1.0 does not take a picture")
	require.False(t, r.OK)
	require.Equal(t, 1, faults(r), "%+v", r.Checks)
}

func faults(r doctor.Report) (n int) {
	for _, c := range r.Checks {
		if c.State == doctor.Warning || c.State == doctor.Problem {
			n++
		}
	}
	return n
}

// program writes a shell script of that name into PATH.
func program(t *testing.T, name, script string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("PATH"), name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700))
	return path
}

func fakeBrowser(t *testing.T) string {
	t.Helper()
	return program(t, "chromium", "[ \"$1\" = --version ] || exit 1\necho Fake 1.0\n")
}

func TestAServerThatIsNotThere(t *testing.T) {
	o := options(t)
	at(t, nil)
	r := doctor.Examine(t.Context(), o)
	require.Equal(t, doctor.Check{
		Area: "server", Name: "server", State: doctor.Unchecked, Detail: "the embedded server does not run; it starts when it is needed", Fix: "starter server start",
	}, find(t, r, "server"))
	require.Equal(t, doctor.Problem, find(t, r, "binary").State)
	require.Contains(t, find(t, r, "binary").Detail, "/no/server")
	require.Equal(t, doctor.OK, find(t, r, "state").State, "the offline checks go on")
	require.Equal(t, doctor.Warning, find(t, r, "browser").State)
	require.Contains(t, find(t, r, "browser").Fix, "apt-get install chromium")
	require.NoDirExists(t, filepath.Join(o.Settings.StateDir, "server"))

	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	r = doctor.Examine(t.Context(), o)
	require.Equal(t, doctor.Problem, find(t, r, "listen").State)
	require.Contains(t, find(t, r, "listen").Detail, "nothing listens at 127.0.0.1:1")
}

func TestAServerThatIsNotSetUp(t *testing.T) {
	o := options(t)
	f := well(t, o)
	f.keeps = 24 * time.Hour
	f.attributes = map[string]enumspb.IndexedValueType{"PassbookPipeline": enumspb.INDEXED_VALUE_TYPE_TEXT}
	host, err := local.HostID(o.Settings.StateDir)
	require.NoError(t, err)
	f.polled["passbook-calls-"+host] = fmt.Sprintf("%d@%s@", 1<<30, hostname(t)) // a process of this machine that has ended
	delete(f.polled, "passbook-dir-"+host)
	address := at(t, f)
	r := doctor.Examine(t.Context(), o)
	namespace := find(t, r, "namespace")
	require.Equal(t, doctor.Warning, namespace.State)
	require.Equal(t, "temporal operator namespace update -n default --retention 90d --address "+address, namespace.Fix)
	attributes := find(t, r, "attributes")
	require.Equal(t, doctor.Warning, attributes.State)
	require.Contains(t, attributes.Fix, "--name PassbookPipeline --type Keyword")
	require.Contains(t, attributes.Fix, "--name PassbookScore --type Double")
	queues := find(t, r, "queues")
	require.Equal(t, doctor.Problem, queues.State)
	require.Equal(t, "nobody works on passbook-dir-"+host+", passbook-calls-"+host+"; a worker is wanted on this machine", queues.Detail)
	require.Equal(t, "TEMPORAL_ADDRESS="+address+" PASSBOOK_STATE_DIR="+o.Settings.StateDir+" starter worker", queues.Fix)
}

func TestAWorkerThatHasJustStartedIsGivenTheTimeToAsk(t *testing.T) {
	o := options(t)
	f := well(t, o)
	at(t, f)
	f.late.Store(2)
	require.Equal(t, doctor.Problem, find(t, doctor.Examine(t.Context(), o), "queues").State, "there is none to wait for")
	require.NoError(t, local.AnnounceReady(o.Settings.StateDir, "key", time.Now()))
	f.late.Store(2)
	require.Equal(t, doctor.OK, find(t, doctor.Examine(t.Context(), o), "queues").State)
}

func hostname(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	require.NoError(t, err)
	return name
}

// wrote makes a directory of a run with two events.
func wrote(t *testing.T, o doctor.Options, id string) rundir.Dir {
	t.Helper()
	return wroteTo(t, o, rundir.At(filepath.Join(o.Settings.RunRoot, id)), run.Claim{RunID: id})
}

func wroteTo(t *testing.T, o doctor.Options, d rundir.Dir, claim run.Claim) rundir.Dir {
	t.Helper()
	id := claim.RunID
	claim.Version, claim.Pipeline, claim.CreatedAt = 1, "small", "2026-01-02T03:04:05.000Z"
	require.NoError(t, d.Take(claim))
	lines := []string{
		`{"seq":1,"ts":"2026-01-02T03:04:05.000Z","kind":"run.start","phase":null,"payload":{"pipeline":"small","run_id":"` + id + `"}}`,
		`{"seq":2,"ts":"2026-01-02T03:04:06.000Z","kind":"phase.start","phase":"build","payload":{"phase_key":"build","title":"Build"}}`,
	}
	s, err := store.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	defer s.Close()
	p, err := d.Project(t.Context(), activities.Blobs(s), rundir.Batch{Epoch: 1, First: 1, Lines: lines})
	require.NoError(t, err)
	require.Equal(t, rundir.Written, p.Outcome)
	require.NoError(t, operate.Index(o.Settings.StateDir, id, d.Root))
	return d
}

func TestRunsThatAreOpen(t *testing.T) {
	o := options(t)
	f := well(t, o)
	long := timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	project := &workflowpb.PendingActivityInfo{
		ActivityType: &commonpb.ActivityType{Name: "Project"}, Attempt: 7, State: enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, ScheduledTime: long, LastStartedTime: long,
		LastFailure: &failurepb.Failure{Message: "append event 3: no space left on device"},
	}
	untaken := &workflowpb.PendingActivityInfo{
		ActivityType: &commonpb.ActivityType{Name: "RunPass"}, Attempt: 1, State: enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, ScheduledTime: long,
	}
	at2, at3 := &run.State{Status: run.Running, Seq: 2}, &run.State{Status: run.Paused, Reason: "disk-full", Seq: 3}
	f.runs = map[string]workflow{
		"well": {isOpen, at2, nil}, "stalled": {isOpen, at3, []*workflowpb.PendingActivityInfo{project}}, "mute": {isOpen, nil, nil},
		"untaken": {isOpen, at2, []*workflowpb.PendingActivityInfo{untaken}}, "ended": {terminated, nil, nil},
		"fresh": {isOpen, at2, nil}, "bare": {terminated, nil, nil},
	}
	for id := range f.runs {
		d := wrote(t, o, id)
		if id == "fresh" || id == "bare" {
			require.NoError(t, os.Remove(d.Path(rundir.MetaFile)))
		}
	}
	wrote(t, o, "lost")
	damaged := wrote(t, o, "damaged")
	require.NoError(t, os.WriteFile(damaged.Path(rundir.MetaFile), []byte("{"), 0o600))
	address := at(t, f)
	r := doctor.Examine(t.Context(), o)
	root := o.Settings.RunRoot
	worker := "TEMPORAL_ADDRESS=" + address + " PASSBOOK_STATE_DIR=" + o.Settings.StateDir + " starter worker"
	for _, want := range []struct {
		name  string
		state doctor.State
		says  string
		fix   string
	}{
		{"well", doctor.OK, "running in " + root + "/well, which has all 2 events", ""},
		{"fresh", doctor.OK, "running in " + root + "/fresh, which has all 2 events", ""},
		{"bare", doctor.Problem, "open " + root + "/bare/meta.json: no such file or directory", "starter check " + root + "/bare"},
		{
			"stalled", doctor.Problem, root + "/stalled is stalled at event 2 of 3; the workflow is paused (disk-full); Project waits for its attempt 7, the last failed: append event 3: no space left on device",
			"mend that; it is tried again by itself. More: starter diagnose " + root + "/stalled",
		},
		{"mute", doctor.Problem, "its workflow is open and answers no query, so no worker has it (no worker)", worker},
		{"untaken", doctor.Warning, "running in " + root + "/untaken; nobody takes RunPass from queue  since " + long.AsTime().Local().Format(time.DateTime), worker},
		{"ended", doctor.Problem, "interrupted: the events in " + root + "/ended leave it running, and its workflow has been terminated", "starter resume " + root + "/ended"},
		{"lost", doctor.Problem, "interrupted: the events in " + root + "/lost leave it running, and Temporal does not know its workflow any more", "starter resume " + root + "/lost"},
	} {
		require.Contains(t, r.Checks, doctor.Check{Area: "runs", Name: "run " + want.name, State: want.state, Detail: want.says, Fix: want.fix})
	}
	hurt := find(t, r, "run damaged")
	require.Equal(t, doctor.Problem, hurt.State)
	require.Equal(t, "starter check "+damaged.Root, hurt.Fix)

	one := rundir.At(filepath.Join(root, "well"))
	o.Run = &one
	r = doctor.Examine(t.Context(), o)
	require.Equal(t, "run well", r.Checks[len(r.Checks)-1].Name)
	require.Equal(t, "run directory", r.Checks[len(r.Checks)-2].Name, "only the run that was named")
}

func TestARunWithoutAServer(t *testing.T) {
	o := options(t)
	at(t, nil)
	d := wrote(t, o, "alone")
	r := doctor.Examine(t.Context(), o)
	require.Contains(t, r.Checks, doctor.Check{
		Area: "runs", Name: "run alone", State: doctor.Unchecked, Detail: "running in " + d.Root + ", as recorded; there is no server to ask", Fix: "starter status " + d.Root,
	})
}

func TestAgents(t *testing.T) {
	const version = "case \"$1\" in --version) echo 1.0; exit;; esac\n"
	const help = "case \"$1\" in --help) echo '  auth  Manage'; echo ' login  Manage'; exit;; esac\n"
	const calls = "echo called >> \"$HOME/calls\"\n"
	for _, row := range []struct {
		name, program, script string
		env                   map[string]string
		state                 doctor.State
		says, fix             string
	}{
		{"missing", "", "", nil, doctor.Problem, "claude is not in PATH", "npm install -g @anthropic-ai/claude-code"},
		{"broken", "claude", "echo no node >&2; exit 1\n", nil, doctor.Problem, "does not answer --version: exit status 1 no node", "npm install -g @anthropic-ai/claude-code"},
		{"logged in", "claude", version + help + "[ \"$*\" = 'auth status' ] || " + calls, nil, doctor.OK, "1.0, logged in", ""},
		{"logged out", "claude", version + help + "echo nobody; exit 1", nil, doctor.Problem, "1.0, and nobody is logged in (nobody)", "claude auth login, or set ANTHROPIC_API_KEY"},
		{"older", "claude", version + "case \"$1\" in --help) echo 'Usage: claude [prompt]'; exit;; esac\n" + calls, nil, doctor.Unchecked, "1.0; whether it is logged in only a call would show", ""},
		{"with a key", "claude", version + calls, map[string]string{"ANTHROPIC_API_KEY": "k"}, doctor.OK, "1.0, with ANTHROPIC_API_KEY", ""},
		{"codex", "codex", version + help + "echo 'Not logged in' >&2; exit 1", nil, doctor.Problem, "nobody is logged in (Not logged in)", "codex login"},
		{"gemini", "gemini", version + calls, nil, doctor.Unchecked, "only a call would show", ""},
		{"a program of one's own", "mine", "exit 3", nil, doctor.Unchecked, "it does not answer --version, and need not", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := options(t)
			at(t, nil)
			for _, key := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CODEX_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"} {
				t.Setenv(key, row.env[key])
			}
			name := row.program
			if name == "" {
				name = "claude"
			} else {
				program(t, name, row.script)
			}
			o.Agents = []pipeline.Agent{{Name: "", Run: []string{name, "-p"}}, {Name: "again", Run: []string{name}}}
			r := doctor.Examine(t.Context(), o)
			c := find(t, r, name)
			require.Equal(t, row.state, c.State, c.Detail)
			require.Contains(t, c.Detail, row.says)
			require.Equal(t, row.fix, c.Fix)
			require.NoFileExists(t, filepath.Join(os.Getenv("HOME"), "calls"), "it was called")
			n := 0
			for _, c := range r.Checks {
				if c.Area == "agents" {
					n++
				}
			}
			require.Equal(t, 1, n, "once a program")
		})
	}
}

func TestTheUsualAgentsAreLookedAtWithoutADefinition(t *testing.T) {
	o := options(t)
	at(t, nil)
	o.Agents = nil
	require.Equal(t, doctor.Unchecked, find(t, doctor.Examine(t.Context(), o), "agents").State)
	program(t, "codex", "case \"$1\" in --version) echo 1.0; exit;; --help) echo login; exit;; esac\nexit 1\n")
	require.Equal(t, doctor.Warning, find(t, doctor.Examine(t.Context(), o), "codex").State)
}

func TestFolders(t *testing.T) {
	o := options(t)
	at(t, nil)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	o.Settings.RunRoot = filepath.Join(file, "runs")
	o.Settings.Store = "mem://?secret_key=hidden"
	r := doctor.Examine(t.Context(), o)
	require.Equal(t, doctor.Problem, find(t, r, "run root").State)
	require.Contains(t, find(t, r, "run root").Fix, "PASSBOOK_RUN_ROOT")
	require.NoDirExists(t, o.Settings.RunRoot)
	store := find(t, r, "store")
	require.Equal(t, doctor.Problem, store.State)
	require.Contains(t, store.Fix, "PASSBOOK_STORE")
	require.NotContains(t, store.Detail, "hidden")
}

// TestTheDisksOfARun: where the run writes counts, and not where the settings would have another run written.
func TestTheDisksOfARun(t *testing.T) {
	o := options(t)
	at(t, nil)
	host, err := local.HostID(o.Settings.StateDir)
	require.NoError(t, err)
	elsewhere := t.TempDir()
	d := wroteTo(t, o, rundir.At(filepath.Join(elsewhere, "run")), run.Claim{RunID: "one", Host: host, Store: "file://" + elsewhere + "/store"})
	file := filepath.Join(elsewhere, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	o.Settings.RunRoot, o.Settings.Store = filepath.Join(file, "runs"), "file://"+file+"/store" // no use to this run
	o.Run = &d
	r := doctor.Examine(t.Context(), o)
	on, err := volume.Of(elsewhere)
	require.NoError(t, err)
	for name, path := range map[string]string{"run directory": d.Root, "store": elsewhere + "/store", "state": o.Settings.StateDir, "temp": os.TempDir()} {
		c := find(t, r, name)
		require.NotEqual(t, doctor.Unchecked, c.State, c.Detail)
		require.Contains(t, c.Detail, path)
		require.Contains(t, c.Detail, "file system ")
	}
	require.Contains(t, find(t, r, "run directory").Detail, "file system "+on.Mount+": ")
	require.False(t, slices.ContainsFunc(r.Checks, func(c doctor.Check) bool { return c.Name == "run root" }), "the run is elsewhere")

	far := wroteTo(t, o, rundir.At(filepath.Join(elsewhere, "far")), run.Claim{RunID: "far", Host: "0123456789abcdef", Store: "file:///nowhere"})
	o.Run = &far
	r = doctor.Examine(t.Context(), o)
	require.Equal(t, doctor.Unchecked, find(t, r, "host").State)
	require.Contains(t, find(t, r, "host").Detail, "written by host 0123456789abcdef")
	require.False(t, slices.ContainsFunc(r.Checks, func(c doctor.Check) bool { return c.Name == "store" }))
}

// Scripts read this.
func TestTheShapeOfTheReport(t *testing.T) {
	raw, err := json.Marshal(doctor.Report{Checks: []doctor.Check{{Area: "a", Name: "n", State: doctor.Unchecked}}})
	require.NoError(t, err)
	require.JSONEq(t, `{"ok": false, "checks": [{"area": "a", "name": "n", "state": "not_checked", "detail": "", "fix": ""}]}`, string(raw))
}

// bound writes the directory of a run of this machine whose agent is claude, and hands an environment over to it.
func bound(t *testing.T, o doctor.Options, id string, variables ...string) rundir.Dir {
	t.Helper()
	d := wrote(t, o, id)
	host, err := local.HostID(o.Settings.StateDir)
	require.NoError(t, err)
	for name, v := range map[string]any{
		rundir.ClaimFile: run.Claim{Version: 1, RunID: id, Pipeline: "small", CreatedAt: "2026-01-02T03:04:05.000Z", Store: o.Settings.Store, Host: host},
		rundir.PlanFile:  pipeline.Plan{Version: pipeline.PlanVersion, Agents: []pipeline.Agent{{Run: []string{"claude", "-p"}, Env: []string{"MY_VALUE"}}}},
	} {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(d.Path(name)), 0o700))
		require.NoError(t, os.WriteFile(d.Path(name), raw, 0o600))
	}
	if variables != nil {
		_, err = environ.Save(o.Settings.StateDir, environ.Environment{RunID: id, By: "start", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Variables: variables})
		require.NoError(t, err)
	}
	return d
}

func TestTheEnvironmentOfARunsCalls(t *testing.T) {
	const answers = "case \"$1\" in --version) echo 1.0; exit;; --help) echo auth; exit;; esac\n[ -n \"$ANTHROPIC_BASE_URL\" ] || exit 1\n"
	for _, row := range []struct {
		name    string
		mine    bool     // this terminal finds claude
		theirs  bool     // the calls of the run do
		handed  bool     // an environment was handed over; else the worker's counts
		values  []string // of the run
		state   doctor.State
		says    []string
		fix     bool
		program doctor.State // the check of claude itself
	}{
		{"the same", true, false, true, []string{"PATH=$MINE"}, doctor.OK, []string{"the environment of its start at ", "claude is $MINE/claude", "PATH=$MINE"}, false, doctor.Problem},
		{"logged in there only", true, false, true, []string{"PATH=$MINE", "ANTHROPIC_BASE_URL=x"}, doctor.OK, nil, false, doctor.OK},
		{"installed since", true, false, true, []string{"PATH=$THEIRS"}, doctor.Problem, []string{"claude is not found by them; this terminal finds $MINE/claude", "PATH=$THEIRS"}, true, doctor.Problem},
		{"nowhere", false, false, true, []string{"PATH=$THEIRS"}, doctor.Problem, []string{"found neither by them nor in this terminal"}, true, doctor.Problem},
		{"two of them", true, true, true, []string{"PATH=$THEIRS"}, doctor.Warning, []string{"claude is $THEIRS/claude, and $MINE/claude in this terminal"}, true, doctor.Problem},
		{"only the run has it", false, true, true, []string{"PATH=$THEIRS"}, doctor.OK, []string{"(this terminal does not find it)"}, false, doctor.Problem},
		{"another key", true, false, true, []string{"PATH=$MINE", "MY_VALUE=old"}, doctor.Warning, []string{"MY_VALUE set otherwise in this terminal"}, true, doctor.Problem},
		{"none handed over", true, false, false, nil, doctor.Problem, []string{"the worker's environment (no other one was handed over), with the PATH that the worker of this machine announced when it started (pid ", "PATH=$THEIRS"}, true, doctor.Problem},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := options(t)
			o.Agents = nil
			at(t, nil)
			mine, theirs := os.Getenv("PATH"), t.TempDir()
			places := strings.NewReplacer("$MINE", mine, "$THEIRS", theirs)
			if row.name == "another key" {
				t.Setenv("MY_VALUE", "new")
			}
			if row.theirs {
				t.Setenv("PATH", theirs)
				program(t, "claude", answers)
			}
			t.Setenv("PATH", theirs)
			require.NoError(t, local.AnnounceReady(o.Settings.StateDir, "key", time.Now()))
			t.Setenv("PATH", mine)
			if row.mine {
				program(t, "claude", answers)
			}
			for i := range row.values {
				row.values[i] = places.Replace(row.values[i])
			}
			d := bound(t, o, "alone", row.values...)
			o.Run = &d
			r := doctor.Examine(t.Context(), o)
			c := find(t, r, "env alone")
			require.Equal(t, row.state, c.State, c.Detail)
			for _, text := range row.says {
				require.Contains(t, c.Detail, places.Replace(text))
			}
			require.NotContains(t, c.Detail, "old", "no value is shown")
			if row.fix {
				require.Equal(t, "starter pause "+d.Root+", then starter resume "+d.Root+", typed in this terminal", c.Fix)
			} else {
				require.Empty(t, c.Fix)
			}
			if row.handed {
				require.Equal(t, row.program, find(t, r, "claude").State, "%+v", r.Checks)
			}
		})
	}
}

func TestAnEnvironmentThatDoesNotCountIsNamed(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(file string) error
		state doctor.State
		says  []string
	}{
		{"others may read it", func(file string) error { return os.Chmod(file, 0o644) }, doctor.Warning, []string{"it is not private to this user", "the PATH that the worker of this machine announced"}},
		{"it cannot be read", func(file string) error { return os.WriteFile(file, []byte("{"), 0o600) }, doctor.Problem, []string{"none of its calls is made", "alone.json"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := options(t)
			at(t, nil)
			program(t, "claude", "echo 1.0\n")
			require.NoError(t, local.AnnounceReady(o.Settings.StateDir, "key", time.Now()))
			d := bound(t, o, "alone", "PATH="+os.Getenv("PATH"))
			require.NoError(t, row.spoil(filepath.Join(o.Settings.StateDir, "environ", "alone.json")))
			o.Agents, o.Run = nil, &d
			c := find(t, doctor.Examine(t.Context(), o), "env alone")
			require.Equal(t, row.state, c.State, c.Detail)
			for _, text := range row.says {
				require.Contains(t, c.Detail, text)
			}
			require.Contains(t, c.Fix, "starter resume "+d.Root)
		})
	}
}

func TestTheWorkersPathCountsForABucket(t *testing.T) {
	o := options(t)
	at(t, nil)
	mine, theirs := os.Getenv("PATH"), t.TempDir()
	t.Setenv("PATH", theirs)
	require.NoError(t, local.AnnounceReady(o.Settings.StateDir, "key", time.Now()))
	t.Setenv("PATH", mine)
	program(t, "claude", "echo 1.0\n")
	o.Agents, o.Settings.Store = []pipeline.Agent{{Run: []string{"claude"}}}, "mem://"
	c := find(t, doctor.Examine(t.Context(), o), "claude")
	require.Equal(t, doctor.Problem, c.State)
	require.Contains(t, c.Detail, "calls of runs whose store is a bucket get the worker's environment")
	require.Contains(t, c.Detail, "PATH="+theirs)
	require.Contains(t, c.Fix, "starter server stop")
}

// TestTheKeeper is reported where settings want one: whether it runs, and what it could not restart.
func TestTheKeeper(t *testing.T) {
	o := options(t)
	at(t, nil)
	o.Settings.Keeper = true
	self, err := process.Self()
	require.NoError(t, err)
	keeps := func(k local.Keeper) {
		raw, err := json.Marshal(k)
		require.NoError(t, err)
		dir := filepath.Join(o.Settings.StateDir, "keeper")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "keeper.json"), raw, 0o600))
	}
	keeps(local.Keeper{Process: self})
	require.Equal(t, doctor.OK, find(t, doctor.Examine(t.Context(), o), "keeper").State)
	keeps(local.Keeper{Process: self, Server: local.Restarts{InRow: 10, GaveUp: true, Error: "the database is of another version"}})
	c := find(t, doctor.Examine(t.Context(), o), "keeper")
	require.Equal(t, doctor.Problem, c.State)
	require.Contains(t, c.Detail, "it could not restart the server: gave up after 10 restarts in a row")
	require.Contains(t, c.Detail, "the database is of another version")
	require.Equal(t, "fix the cause, then run: starter server start", c.Fix)
}
