package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// Releases of the same source. Only the link differs.
const (
	former = "v0.1.0"
	later  = "v0.1.1-dev"
)

var releases = map[string]func() (string, error){
	former: sync.OnceValues(func() (string, error) { return released(former) }),
	later:  sync.OnceValues(func() (string, error) { return released(later) }),
}

// released builds a release, with the supervisor that it carries, and returns its folder.
func released(version string) (string, error) {
	dir := filepath.Join(programs, version)
	cmd := exec.Command("scripts/programs", dir)
	cmd.Dir, cmd.Stderr = project, os.Stderr
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false -trimpath "+
		"-ldflags=-X=github.com/passbook-run/passbook/internal/build.version="+version)
	return dir, cmd.Run()
}

// install makes a release that of the environment.
func (h *environment) install(version string) {
	h.t.Helper()
	dir, err := releases[version]()
	require.NoError(h.t, err)
	h.bin = dir
	require.Contains(h.t, h.starter("version"), "Passbook:    "+version)
}

// open is runs of one agent, which logs its calls and answers while the file "gate" exists.
type open struct {
	*environment
	log, gate string
}

func (h *environment) open() *open {
	h.t.Helper()
	o := &open{h, h.dir("calls.log"), h.dir("gate")}
	script := "#!/bin/sh\nname=$(sed -n 's/.*name=\\([a-z]*\\).*/\\1/p' | head -n 1)\necho start $name >>" +
		o.log + "\nuntil [ -e " + o.gate + " ]; do sleep 0.1; done\n" +
		"echo answer $name >>" + o.log + "\necho An answer.\n"
	require.NoError(h.t, os.WriteFile(h.dir("agent.sh"), []byte(script), 0o700))
	o.let(true)
	return o
}

// let lets calls be answered, or holds them.
func (o *open) let(answer bool) {
	o.t.Helper()
	if answer {
		require.NoError(o.t, os.WriteFile(o.gate, nil, 0o600))
		return
	}
	require.NoError(o.t, os.Remove(o.gate))
}

// begin starts a run whose stages are these, and whose prompts are its name.
func (o *open) begin(name, stages string) string {
	o.t.Helper()
	folder := o.dir("pipeline-" + name)
	require.NoError(o.t, os.MkdirAll(folder, 0o700))
	for file, text := range map[string]string{"p.md": "name=" + name + "\n", "p.yaml": o.definition(name, stages)} {
		require.NoError(o.t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600))
	}
	o.starter("run", "--config", filepath.Join(folder, "p.yaml"), "--output-dir", o.dir("run-"+name), "--detach")
	return o.dir("run-" + name)
}

func (o *open) definition(name, stages string) string {
	return "pipeline: " + name + "\nagent: {run: [" + o.dir("agent.sh") + "], reply: text, " +
		"price: {input: 15, output: 75}}\nlimits: {attempts: 1}\n" +
		"roles:\n  a: {prompt: p.md, gives: report}\nstages:\n" + stages
}

// count is how often the log has a line.
func (o *open) count(line string) int {
	o.t.Helper()
	raw, err := os.ReadFile(o.log)
	if !os.IsNotExist(err) {
		require.NoError(o.t, err)
	}
	n := 0
	for each := range strings.Lines(string(raw)) {
		if strings.TrimSpace(each) == line {
			n++
		}
	}
	return n
}

// paid wants a valid directory of a run that is done, whose calls were each made and paid for once.
func (o *open) paid(dir string, calls int) {
	o.t.Helper()
	until(o.t, dir+" is done", func() bool { return statusIs(dir, run.Done) })
	name := strings.TrimPrefix(filepath.Base(dir), "run-")
	require.Equal(o.t, calls, o.count("start "+name))
	require.Equal(o.t, calls, o.count("answer "+name))
	require.Len(o.t, of[run.PassEnd](eventsOf(o.t, dir), run.KindPassEnd), calls)
	require.Empty(o.t, of[run.PassAttempt](eventsOf(o.t, dir), run.KindPassAttempt), "no attempt was lost")
	require.Contains(o.t, o.starter("check", dir), "The files agree with the events.")
}

const (
	three    = "  - name: one\n    steps: [{role: a}, {role: a}, {role: a}]\n"
	asksOnce = "  - name: one\n    steps: [{role: a}, {ask: Continue}, {role: a}]\n"
)

// reinstall stops server and worker, and starts those of a release. Calls continue meanwhile.
func (o *open) reinstall(version string) {
	o.t.Helper()
	o.install(version)
	o.starter("server", "stop")
	o.starter("server", "start")
}

// TestUpgradeAndDowngradeOpenRuns replaces server and worker by those of a later release and rolls back, with a run in a
// call, a run that asks and a paused run. All runs complete, and pay for no call twice.
func TestUpgradeAndDowngradeOpenRuns(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_IDLE=10m").open()
	h.install(former)
	asking := h.begin("asks", asksOnce)
	until(t, "a run asks", func() bool { return statusIs(asking, run.AwaitingPhaseHandoff) })
	h.let(false)
	paused, calling := h.begin("pauses", three), h.begin("calls", three)
	until(t, "two runs call", func() bool { return h.count("start pauses")+h.count("start calls") == 2 })
	h.starter("pause", paused, "--now")
	until(t, "a run is paused", func() bool { return statusIs(paused, run.Paused) })
	ended := h.count("start pauses") // a call that --now ended, and that is repeated

	for _, version := range []string{later, former} {
		h.reinstall(version)
		require.Equal(t, 1, h.count("start calls"), "the worker of %s joins the call", version)
	}
	h.let(true)
	h.starter("resume", paused)
	h.starter("decide", asking, "--action", "continue")
	h.paid(calling, 3)
	h.paid(asking, 2)
	until(t, "the paused run is done", func() bool { return statusIs(paused, run.Done) })
	require.Equal(t, 3, h.count("answer pauses"))
	require.Equal(t, 3+ended, h.count("start pauses"))
	require.Contains(t, h.starter("check", paused), "The files agree with the events.")
}
