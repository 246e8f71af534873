package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/agent/scripted"
	"github.com/passbook-run/passbook/environ"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/work"
)

// settlement is a call that runs in this worker. When done is closed, ans is what came back, or err says why there is nothing.
type settlement struct {
	done   chan struct{}
	ans    *answer
	err    error
	l      ledger
	number int     // of the delivery
	dir    string  // scratch directory of the delivery
	tree   *copied // the workspace, if the agent works on a copy of it
	file   string  // where the agent finds the artifact, if it is given one
	before []byte  // the artifact as it was given
	kind   string  // of replies

	recovered bool // it is read from what an earlier delivery left
}

const (
	stdoutFile = "stdout"
	stderrFile = "stderr"
	childFile  = "child.json"
	workerFile = "worker.json"
	promptFile = "prompt.md"
	workDir    = "work"
)

func (a *Activities) flying(call string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.settled[call]
	return ok
}

// bytes is how long the reply of a running call is so far.
func (a *Activities) bytes(call string) int64 {
	a.mu.Lock()
	st := a.settled[call]
	a.mu.Unlock()
	if st == nil {
		return 0
	}
	fi, err := os.Stat(filepath.Join(st.dir, stdoutFile))
	if err != nil {
		return 0
	}
	return fi.Size()
}

// fly starts the call's process, or joins it if it runs here.
func (a *Activities) fly(ctx context.Context, l ledger, in work.PassInput, delivery int) (*settlement, bool, error) {
	var st *settlement
	flight, joined, err := a.flights.Join(in.Call, func() (*agent.Child, error) {
		var child *agent.Child
		var err error
		st, child, err = a.launch(ctx, l, in, delivery)
		if err != nil {
			return nil, err
		}
		a.mu.Lock()
		a.settled[in.Call] = st
		a.mu.Unlock()
		return child, nil
	})
	var spawn *spawnError
	if errors.As(err, &spawn) {
		return spawn.st, joined, nil
	}
	if err != nil {
		return nil, joined, err
	}
	if joined {
		a.mu.Lock()
		st = a.settled[in.Call]
		a.mu.Unlock()
		if st == nil { // it settled in this very moment: its result is in the store
			ans, err := l.result(ctx)
			return &settlement{done: closed(), ans: ans, err: err}, true, nil
		}
		return st, true, nil
	}
	go a.supervise(context.WithoutCancel(ctx), flight, in, st)
	return st, false, nil
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// spawnError carries a call that never became a process; that is an answer too.
type spawnError struct {
	st  *settlement
	err error
}

func (e *spawnError) Error() string { return e.err.Error() }

// launch claims the delivery, lays out its scratch directory and starts the process.
func (a *Activities) launch(ctx context.Context, l ledger, in work.PassInput, delivery int) (*settlement, *agent.Child, error) {
	plan, err := a.plan(ctx, l.s, in.At.Plan)
	if err != nil {
		return nil, nil, err
	}
	_, _, step, role, err := find(plan, in.At)
	if err != nil {
		return nil, nil, err
	}
	ag, ok := agentOf(plan, step, role)
	if !ok {
		return nil, nil, badInput("the plan has no agent %q", role.Agent)
	}
	st := &settlement{done: make(chan struct{}), l: l, kind: replyKind(ag)}
	cmd := agent.Command{Argv: a.argv(ag), Env: a.env(ag), From: environ.Of(ctx), Timeout: time.Duration(in.TimeoutMS) * time.Millisecond}
	if err := mustHave(in, cmd); err != nil {
		return nil, nil, err
	}
	if err := a.claim(ctx, st, in, cmd, delivery); err != nil {
		return nil, nil, err
	}
	if err := a.layOut(ctx, st, in, plan, step, role); err != nil {
		return nil, nil, errors.Join(st.over(ctx, err), clear(st.dir))
	}
	cmd.Dir, cmd.Mark = filepath.Join(st.dir, workDir), st.dir
	cmd.Prompt, cmd.Stdout, cmd.Stderr = filepath.Join(st.dir, promptFile), filepath.Join(st.dir, stdoutFile), filepath.Join(st.dir, stderrFile)
	if err := noteEnviron(st.dir, cmd.Environ()); err != nil {
		return nil, nil, errors.Join(st.over(ctx, err), clear(st.dir))
	}
	a.cfg.Reached(LaidOut, in.Call)
	child, err := agent.Start(cmd)
	if err != nil {
		return nil, nil, a.neverStarted(ctx, st, err)
	}
	a.cfg.Reached(Spawned, in.Call)
	if err := errors.Join(writeIdentity(st.dir, workerFile, a.cfg.Worker), writeIdentity(st.dir, childFile, child.Identity())); err != nil {
		child.Kill("it could not be recorded, so nobody would find it again")
		<-child.Done()
		return nil, nil, errors.Join(st.over(ctx, err), clear(st.dir))
	}
	return st, child, nil
}

// over notes that a delivery ends without a result, because of an error that is given back.
func (st *settlement) over(ctx context.Context, cause error) error {
	return errors.Join(cause, st.l.end(context.WithoutCancel(ctx), st.number))
}

// agentOf is who does a step: an agent, or the shell.
func agentOf(plan *pipeline.Plan, step pipeline.PlanStep, role pipeline.Role) (pipeline.Agent, bool) {
	if step.Kind == pipeline.KindRun {
		return pipeline.Agent{Run: []string{pipeline.Shell, "-c", step.Run}, Reply: agent.KindText}, true
	}
	return plan.Agent(role.Agent)
}

// argv is the command of an agent; the built-in one is this program.
func (a *Activities) argv(ag pipeline.Agent) []string {
	if !isScripted(ag) {
		return ag.Run
	}
	return append(append([]string(nil), a.cfg.Scripted...), ag.Run[1:]...)
}

func isScripted(ag pipeline.Agent) bool { return len(ag.Run) > 0 && ag.Run[0] == pipeline.Scripted }

// replyKind is the form of an agent's replies; the built-in one answers as claude does.
func replyKind(ag pipeline.Agent) string {
	if ag.Reply == "" && isScripted(ag) {
		return agent.KindJSON
	}
	return ag.Reply
}

// env names the variables an agent may see; the built-in one is steered by some of its own.
func (a *Activities) env(ag pipeline.Agent) []string {
	if !isScripted(ag) {
		return ag.Env
	}
	return append(scripted.EnvNames(), ag.Env...)
}

func (a *Activities) claim(ctx context.Context, st *settlement, in work.PassInput, cmd agent.Command, delivery int) error {
	request, err := json.Marshal(struct {
		Prompt, Artifact string
		Argv, Env        []string
	}{in.Prompt.Original(), run.DigestOf(in.Artifact), cmd.Argv, cmd.EnvNames()})
	if err != nil {
		return err
	}
	root := filepath.Join(a.cfg.Scratch, scratchName(in.Call))
	c := claim{
		Version: callVersion, Call: in.Call, Request: string(store.DigestOf(request)), Prompt: in.Prompt.Digest, Host: a.cfg.Host, Worker: a.cfg.Worker,
		Scratch: root, At: run.Time(a.cfg.Now()),
	}
	if err := st.l.claim(ctx, c, delivery); err != nil {
		return err
	}
	st.number = delivery
	st.dir = filepath.Join(root, strconv.Itoa(st.number))
	return nil
}

func writeIdentity(dir, name string, id process.Identity) error {
	raw, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), raw, 0o600)
}

// neverStarted stores that the program could not be started: the workflow decides what follows.
func (a *Activities) neverStarted(ctx context.Context, st *settlement, cause error) error {
	f := agent.SpawnFailure(cause)
	a.hideAll(&f.Message, &f.Diagnostics)
	ans := answer{Version: answerVersion, Call: st.l.call, Delivery: st.number, Host: a.cfg.Host, Spawn: f}
	ans.Exit.Started = a.cfg.Now()
	if _, err := st.l.put(ctx, ans); err != nil {
		return err
	}
	if err := clear(st.dir); err != nil {
		return err
	}
	st.ans = &ans
	close(st.done)
	return &spawnError{st: st, err: fmt.Errorf("start the agent: %w", cause)}
}

// supervise waits for the child and makes its answer durable, whether or not an activity still waits for it. That no activity waits for the delivery is
// only noted where it was ended without an answer: a finished one is read again by whoever comes next.
func (a *Activities) supervise(ctx context.Context, flight *agent.Flight, in work.PassInput, st *settlement) {
	exit := flight.Child.Result()
	a.noteExit(st.dir, exit)
	a.cfg.Reached(Exited, in.Call)
	st.ans, st.err = a.collect(ctx, st, in, exit)
	switch {
	case st.ans != nil:
		a.cfg.Reached(Answered, in.Call)
	case st.err == nil:
		stopped := errors.Join(fmt.Errorf("the agent was stopped: %s", exit.KillCause), a.forget(st.dir))
		st.err = st.over(ctx, stopped)
	}
	a.mu.Lock()
	delete(a.settled, in.Call)
	a.mu.Unlock()
	a.flights.Forget(flight)
	close(st.done)
}

// noteExit leaves the exit record of a delivery. Where it cannot be written, this worker remembers it.
func (a *Activities) noteExit(dir string, exit agent.Exit) {
	if agent.WriteExit(dir, exit, stdoutFile, stderrFile) == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.exits[dir] = exit
}

// exitOf is how the child of a delivery ended; false: no record says that it did.
func (a *Activities) exitOf(dir string) (agent.Exit, bool, error) {
	a.mu.Lock()
	exit, ok := a.exits[dir]
	a.mu.Unlock()
	if ok {
		return exit, true, nil
	}
	return agent.ReadExit(dir)
}

// forget removes all that is left of a delivery without an answer.
func (a *Activities) forget(dir string) error {
	a.mu.Lock()
	delete(a.exits, dir)
	a.mu.Unlock()
	return clear(dir)
}

// collect puts what a finished child left into the store, whatever that is; the first answer of a call counts. nil: it was ended on purpose, and had not
// answered yet.
func (a *Activities) collect(ctx context.Context, st *settlement, in work.PassInput, exit agent.Exit) (*answer, error) {
	out, err := outputsOf(st.dir)
	if err != nil {
		return nil, err
	}
	if exit.Killed && !exit.TimedOut && !agent.Complete(st.kind, out.stdout) {
		return nil, nil
	}
	ans, err := a.answerFrom(ctx, st, in, exit, out)
	if err != nil {
		return nil, err
	}
	ans.Recovered = st.recovered
	won, err := st.l.put(ctx, *ans)
	if err != nil {
		return nil, fmt.Errorf("store the answer of call %s: %w", st.l.call, err)
	}
	if !won { // the one that counts came first
		if ans, err = st.l.result(ctx); err != nil {
			return nil, err
		}
	}
	a.mu.Lock()
	delete(a.exits, st.dir)
	a.mu.Unlock()
	a.sweep(ctx, filepath.Dir(st.dir))
	return ans, nil
}
