package host_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/internal/volume"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

// options of a machine with nothing on it: no browser, no agent.
func doctorOptions(t *testing.T) host.DoctorOptions {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", filepath.Join(dir, "bin"))
	return host.DoctorOptions{
		Settings: config.Settings{
			StateDir: filepath.Join(dir, "state"), RunRoot: filepath.Join(dir, "runs"),
			Store: "file://" + dir + "/state/store", TaskQueue: "passbook",
			Browser: "/no/browser", Server: "/no/server",
		},
		Program: "starter", Version: "v1", Build: "this", Agents: []pipeline.Agent{{Run: []string{"scripted"}}},
	}
}

// well is a server with nothing wrong; this machine's queues are polled.
func well(t *testing.T, o host.DoctorOptions) *doctoredServer {
	t.Helper()
	id, err := host.HostID(o.Settings.StateDir)
	require.NoError(t, err)
	polled := map[string]string{}
	for _, q := range []string{"passbook-dir-" + id, "passbook-calls-" + id} {
		polled[q] = "1@elsewhere@"
	}
	return &doctoredServer{keeps: 90 * 24 * time.Hour, attributes: workflows.SearchAttributes(), polled: polled}
}

func find(t *testing.T, r host.Report, name string) host.Check {
	t.Helper()
	i := slices.IndexFunc(r.Checks, func(c host.Check) bool { return c.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s in %+v", name, r.Checks)
	return r.Checks[i]
}

var update = flag.Bool("update", false, "rewrite the checks in testdata")

// text is a check as golden files show it.
func text(row string, c host.Check, replace ...string) string {
	shown := fmt.Sprintf("%s\n  %s: %s\n", row, c.State, c.Detail)
	if c.Fix != "" {
		shown += "  → " + c.Fix + "\n"
	}
	shown = regexp.MustCompile(`\d+-\d\d-\d\d \d\d:\d\d:\d\d`).ReplaceAllString(shown, "TIME")
	shown = regexp.MustCompile(`pid \d+`).ReplaceAllString(shown, "pid PID")
	return strings.NewReplacer(replace...).Replace(shown)
}

func TestExamineOfAHealthyHost(t *testing.T) {
	o := doctorOptions(t)
	o.Settings.Browser = fakeBrowser(t)
	address := at(t, well(t, o))
	r := host.Examine(t.Context(), o)
	var all string
	for _, name := range []string{"server", "namespace", "attributes", "clock", "queues", "scripted", "runs"} {
		all += text(name, find(t, r, name), address, "ADDRESS")
	}
	testenv.Golden(t, *update, "healthy", all)
	require.Contains(t, find(t, r, "state").Detail, o.Settings.StateDir+" is writable")
	browser := find(t, r, "browser")
	require.Equal(t, host.Warning, browser.State, "a program that is not a browser")
	require.Contains(t, browser.Detail, "Fake 1.0 does not take a picture")
	require.True(t, r.OK, "a warning is no problem")
	require.Equal(t, 1, faults(r), "%+v", r.Checks)
}

func faults(r host.Report) (n int) {
	for _, c := range r.Checks {
		if c.State == host.Warning || c.State == host.Problem {
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

func TestExamineOfAServerWithoutAttributes(t *testing.T) {
	o := doctorOptions(t)
	f := well(t, o)
	f.keeps = 24 * time.Hour
	f.attributes = map[string]enumspb.IndexedValueType{"PassbookPipeline": enumspb.INDEXED_VALUE_TYPE_TEXT}
	id, err := host.HostID(o.Settings.StateDir)
	require.NoError(t, err)
	// a process of this machine that has ended
	ended, err := process.Self()
	require.NoError(t, err)
	ended.PID = 1 << 30
	f.polled["passbook-calls-"+id] = operations.WorkerIdentity(ended, id)
	delete(f.polled, "passbook-dir-"+id)
	address := at(t, f)
	r := host.Examine(t.Context(), o)
	var all string
	for _, name := range []string{"namespace", "attributes", "queues"} {
		all += text(name, find(t, r, name), address, "ADDRESS", o.Settings.StateDir, "STATE", id, "HOST")
	}
	testenv.Golden(t, *update, "unprepared", all)
}

func TestExamineWaitsForTheFirstPollOfANewWorker(t *testing.T) {
	o := doctorOptions(t)
	f := well(t, o)
	at(t, f)
	f.late.Store(2)
	require.Equal(t, host.Problem, find(t, host.Examine(t.Context(), o), "queues").State,
		"there is none to wait for")
	require.NoError(t, host.AnnounceReady(o.Settings.StateDir, "key", time.Now()))
	f.late.Store(2)
	require.Equal(t, host.OK, find(t, host.Examine(t.Context(), o), "queues").State)
}

// wrote makes a directory of a run with two events.
func wrote(t *testing.T, o host.DoctorOptions, id string) rundir.Dir {
	t.Helper()
	return wroteTo(t, o, rundir.At(filepath.Join(o.Settings.RunRoot, id)), run.Claim{RunID: id})
}

func wroteTo(t *testing.T, o host.DoctorOptions, d rundir.Dir, claim run.Claim) rundir.Dir {
	t.Helper()
	id := claim.RunID
	claim.Version, claim.Pipeline, claim.CreatedAt = 1, "small", "2026-01-02T03:04:05.000Z"
	require.NoError(t, d.Take(claim))
	lines := []string{
		`{"seq":1,"ts":"2026-01-02T03:04:05.000Z","kind":"run.start","phase":null,"payload":{"pipeline":"small","run_id":"` +
			id + `"}}`,
		`{"seq":2,"ts":"2026-01-02T03:04:06.000Z","kind":"phase.start","phase":"build","payload":{"phase_key":"build",` +
			`"title":"Build"}}`,
	}
	s, err := store.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	p, err := d.Project(t.Context(), blobs.Of(s), rundir.Batch{Epoch: 1, First: 1, Lines: lines})
	require.NoError(t, err)
	require.Equal(t, run.ProjectionWritten, p.Outcome)
	require.NoError(t, operations.Index(o.Settings.StateDir, id, d.Root))
	return d
}

func TestExamineOfOpenRuns(t *testing.T) {
	o := doctorOptions(t)
	at(t, nil)
	for _, id := range []string{"well", "bare", "damaged"} {
		wrote(t, o, id)
	}
	in := func(id string) string { return filepath.Join(o.Settings.RunRoot, id) }
	require.NoError(t, os.Remove(filepath.Join(in("bare"), rundir.MetaFile)))
	require.NoError(t, os.WriteFile(filepath.Join(in("damaged"), rundir.MetaFile), []byte("{"), 0o600))
	r := host.Examine(t.Context(), o)
	require.Equal(t, host.OK, find(t, r, "run well").State)
	require.Equal(t, host.OK, find(t, r, "run bare").State, "it has just begun")
	damage := find(t, r, "run damaged")
	require.Equal(t, host.Problem, damage.State)
	require.Equal(t, "starter check "+in("damaged"), damage.Fix)

	one := rundir.At(in("well"))
	o.Run = &one
	r = host.Examine(t.Context(), o)
	require.Equal(t, "run well", r.Checks[len(r.Checks)-1].Name)
	require.Equal(t, "run directory", r.Checks[len(r.Checks)-2].Name, "only the run that was named")
}

func TestExamineOfAgents(t *testing.T) {
	const version = "case \"$1\" in --version) echo 1.0; exit;; esac\n"
	const help = "case \"$1\" in --help) echo '  auth  Manage'; echo ' login  Manage'; exit;; esac\n"
	const calls = "echo called >> \"$HOME/calls\"\n"
	var all string
	for _, row := range []struct {
		name, program, script string
		env                   map[string]string
	}{
		{"missing", "claude", "", nil},
		{"broken", "claude", "echo no node >&2; exit 1\n", nil},
		{"logged in", "claude", version + help + "[ \"$*\" = 'auth status' ] || " + calls, nil},
		{"logged out", "claude", version + help + "echo no account; exit 1", nil},
		{"older", "claude", version + "case \"$1\" in --help) echo 'Usage: claude [prompt]'; exit;; esac\n" + calls, nil},
		{"with a key", "claude", version + calls, map[string]string{"ANTHROPIC_API_KEY": "k"}},
		{"codex", "codex", version + help + "echo 'Not logged in' >&2; exit 1", nil},
		{"gemini", "gemini", version + calls, nil},
		{"gemini with a key that it does not get", "gemini", version + calls, map[string]string{"GEMINI_API_KEY": "k"}},
		{"another program", "mine", "exit 3", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := doctorOptions(t)
			at(t, nil)
			for _, key := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
				"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CODEX_API_KEY", "GEMINI_API_KEY",
				"GOOGLE_API_KEY"} {
				t.Setenv(key, row.env[key])
			}
			if row.script != "" {
				program(t, row.program, row.script)
			}
			o.Agents = []pipeline.Agent{{Run: []string{row.program, "-p"}}, {Name: "again", Run: []string{row.program}}}
			o.OnlyAgents = true
			r := host.Examine(t.Context(), o)
			require.Len(t, r.Checks, 2, "only the agents, once a program")
			require.Equal(t, "asked by", r.Checks[0].Name)
			all += text(row.name, find(t, r, row.program), os.Getenv("PATH"), "PATH")
			require.NoFileExists(t, filepath.Join(os.Getenv("HOME"), "calls"), "it was called")
		})
	}
	testenv.Golden(t, *update, "agents", all)
}

func TestExamineOfWellKnownAgentsWithoutADefinition(t *testing.T) {
	o := doctorOptions(t)
	at(t, nil)
	o.Agents = nil
	all := text("none", find(t, host.Examine(t.Context(), o), "agents"))
	program(t, "codex", "case \"$1\" in --version) echo 1.0; exit;; --help) echo login; exit;; esac\nexit 1\n")
	all += text("codex", find(t, host.Examine(t.Context(), o), "codex"), os.Getenv("PATH"), "PATH")
	program(t, "gemini", "echo 1.0\n")
	login := filepath.Join(os.Getenv("HOME"), ".gemini", "oauth_creds.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(login), 0o700))
	require.NoError(t, os.WriteFile(login, []byte("{}"), 0o600))
	o.OnlyAgents = true
	r := host.Examine(t.Context(), o)
	for _, name := range []string{"gemini", "claude"} {
		all += text(name, find(t, r, name), os.Getenv("PATH"), "PATH")
	}
	testenv.Golden(t, *update, "well-known", all)
	require.Len(t, r.Checks, 4)
}

func TestExamineOfFolders(t *testing.T) {
	o := doctorOptions(t)
	at(t, nil)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	o.Settings.RunRoot = filepath.Join(file, "runs")
	o.Settings.Store = "mem://?secret_key=hidden"
	r := host.Examine(t.Context(), o)
	testenv.Golden(t, *update, "folders",
		text("run root", find(t, r, "run root"), file, "FILE")+text("store", find(t, r, "store")))
	require.NoDirExists(t, o.Settings.RunRoot)
}

// TestExamineOfTheDisksOfARun: where the run writes counts, and not where the settings would have another run written.
func TestExamineOfTheDisksOfARun(t *testing.T) {
	o := doctorOptions(t)
	at(t, nil)
	id, err := host.HostID(o.Settings.StateDir)
	require.NoError(t, err)
	elsewhere := t.TempDir()
	d := wroteTo(t, o, rundir.At(filepath.Join(elsewhere, "run")),
		run.Claim{RunID: "one", Host: id, Store: "file://" + elsewhere + "/store"})
	file := filepath.Join(elsewhere, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	o.Settings.RunRoot, o.Settings.Store = filepath.Join(file, "runs"), "file://"+file+"/store" // no use to this run
	o.Run = &d
	r := host.Examine(t.Context(), o)
	on, err := volume.Of(elsewhere)
	require.NoError(t, err)
	for name, path := range map[string]string{"run directory": d.Root, "store": elsewhere + "/store",
		"state": o.Settings.StateDir, "temp": os.TempDir()} {
		c := find(t, r, name)
		require.NotEqual(t, host.Unchecked, c.State, c.Detail)
		require.Contains(t, c.Detail, path)
		require.Contains(t, c.Detail, "file system ")
	}
	require.Contains(t, find(t, r, "run directory").Detail, "file system "+on.Mount+": ")
	require.False(t, slices.ContainsFunc(r.Checks, func(c host.Check) bool { return c.Name == "run root" }),
		"the run is elsewhere")

	far := wroteTo(t, o, rundir.At(filepath.Join(elsewhere, "far")),
		run.Claim{RunID: "far", Host: "0123456789abcdef", Store: "file:///nowhere"})
	o.Run = &far
	r = host.Examine(t.Context(), o)
	require.Equal(t, host.Unchecked, find(t, r, "host").State)
	require.Contains(t, find(t, r, "host").Detail, "written by host 0123456789abcdef")
	require.False(t, slices.ContainsFunc(r.Checks, func(c host.Check) bool { return c.Name == "store" }))
}

// TestExamineOfTheKeeper is reported where settings want one: whether it runs, and what it could not restart.
func TestExamineOfTheKeeper(t *testing.T) {
	o := doctorOptions(t)
	at(t, nil)
	o.Settings.Keeper = true
	self, err := process.Self()
	require.NoError(t, err)
	var all string
	for _, k := range []host.Keeper{{Process: self}, {Process: self,
		Server: host.Restarts{InRow: 10, Error: "the database is of another version"}}} {
		writeRecords(t, o.Settings.StateDir, host.Status{Keeper: &k})
		all += text("keeper", find(t, host.Examine(t.Context(), o), "keeper"))
	}
	testenv.Golden(t, *update, "keeper", all)
}

// TestExamineExecutesNothingOfTheCurrentFolder: a definition names a program of the folder in which doctor runs.
func TestExamineExecutesNothingOfTheCurrentFolder(t *testing.T) {
	o := doctorOptions(t)
	at(t, nil)
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.WriteFile("evil.sh", []byte("#!/bin/sh\necho x >\""+dir+"/executed\"\n"), 0o700))
	for _, name := range []string{"/proc/self/cwd/evil.sh", "./evil.sh"} {
		o.Agents, o.OnlyAgents = []pipeline.Agent{{Run: []string{name}}}, true
		check := find(t, host.Examine(t.Context(), o), "evil.sh")
		require.Equal(t, host.Problem, check.State)
		require.Contains(t, check.Detail, name+" is not executed: its folder ")
		require.NoFileExists(t, filepath.Join(dir, "executed"))
	}
}
