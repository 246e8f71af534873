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
	"github.com/passbook-run/passbook/supervisor"
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

// starter starts or joins the process of a call.
type starter func() (*settlement, *agent.Child, error)

// fly starts the call's process, or joins it if this worker has it already.
func (a *Activities) fly(ctx context.Context, l ledger, in work.PassInput, start starter) (*settlement, bool, error) {
	var st *settlement
	flight, joined, err := a.flights.Join(in.Call, func() (*agent.Child, error) {
		var child *agent.Child
		var err error
		st, child, err = start()
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
	go a.watch(context.WithoutCancel(ctx), flight, in, st)
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

// launch starts a supervisor, claims the delivery for it, lays out the scratch directory and lets the agent start. A worker that ends in between takes
// a supervisor along whose agent has not begun.
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
	st := &settlement{done: make(chan struct{}), l: l, kind: replyKind(ag), number: delivery}
	st.dir = filepath.Join(a.cfg.Scratch, scratchName(in.Call), strconv.Itoa(delivery))
	cmd := agent.Command{Argv: a.argv(ag), Env: a.env(ag), From: environ.Of(ctx), Timeout: time.Duration(in.TimeoutMS) * time.Millisecond}
	if err := mustHave(in, cmd); err != nil {
		return nil, nil, err
	}
	p, err := a.supervisor(st.dir)
	if err != nil {
		return nil, nil, err
	}
	if err := a.claim(ctx, st, in, cmd, p.Identity()); err != nil {
		return nil, nil, errors.Join(err, p.Abandon())
	}
	if err := a.layOut(ctx, st, in, plan, step, role); err != nil {
		return nil, nil, errors.Join(p.Abandon(), st.over(ctx, err), clear(st.dir))
	}
	cmd.Dir, cmd.Mark = filepath.Join(st.dir, workDir), st.dir
	cmd.Prompt, cmd.Stdout, cmd.Stderr = filepath.Join(st.dir, promptFile), filepath.Join(st.dir, stdoutFile), filepath.Join(st.dir, stderrFile)
	if err := writeIdentity(st.dir, workerFile, a.cfg.Worker); err != nil {
		return nil, nil, errors.Join(p.Abandon(), st.over(ctx, err), clear(st.dir))
	}
	a.cfg.Reached(LaidOut, in.Call)
	child, err := agent.Start(p, cmd)
	if err != nil {
		return nil, nil, a.neverStarted(ctx, st, err)
	}
	a.cfg.Reached(Spawned, in.Call)
	return st, child, nil
}

func (a *Activities) supervisor(dir string) (*supervisor.Process, error) {
	argv := a.cfg.Supervisor
	if argv == nil {
		var err error
		if argv, err = supervisor.Argv(); err != nil {
			return nil, err
		}
	}
	return supervisor.Start(argv, dir)
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

// lateness is how long after its timeout a call may end: the time to lay it out, and to end what does not want to.
const lateness = 5 * time.Minute

func (a *Activities) claim(ctx context.Context, st *settlement, in work.PassInput, cmd agent.Command, by process.Identity) error {
	request, err := json.Marshal(struct {
		Prompt, Artifact string
		Argv, Env        []string
	}{in.Prompt.Original(), run.DigestOf(in.Artifact), cmd.Argv, cmd.EnvNames()})
	if err != nil {
		return err
	}
	now := a.cfg.Now()
	return st.l.claim(ctx, claim{
		Version: callVersion, Call: in.Call, Request: string(store.DigestOf(request)), Prompt: in.Prompt.Digest, Host: a.cfg.Host, Worker: a.cfg.Worker,
		Scratch: filepath.Dir(st.dir), At: run.Time(now), Supervisor: by, Deadline: run.Time(now.Add(cmd.Timeout + lateness)),
	}, st.number)
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
	var err error
	if st.ans, err = a.unstarted(ctx, st, cause); err != nil {
		return errors.Join(st.over(ctx, err), clear(st.dir)) // nothing was begun
	}
	close(st.done)
	return &spawnError{st: st, err: fmt.Errorf("start the agent: %w", cause)}
}

// unstarted stores that the agent of a delivery was never started.
func (a *Activities) unstarted(ctx context.Context, st *settlement, cause error) (*answer, error) {
	f := agent.SpawnFailure(cause)
	a.hideAll(&f.Message, &f.Diagnostics)
	ans := &answer{Version: answerVersion, Call: st.l.call, Delivery: st.number, Host: a.cfg.Host, Spawn: f}
	ans.Exit.Started = a.cfg.Now()
	return a.stored(ctx, st, ans)
}

// watch waits for the child and makes its answer durable, whether or not an activity still waits for it. A call that is handed over is left as it is.
func (a *Activities) watch(ctx context.Context, flight *agent.Flight, in work.PassInput, st *settlement) {
	select {
	case <-flight.Child.Done():
		st.ans, st.err = a.settle(ctx, flight.Child, in, st)
	case <-a.over:
		select {
		case <-flight.Child.Done(): // both at once: what has ended is not handed over
			st.ans, st.err = a.settle(ctx, flight.Child, in, st)
		default:
			st.err = errHandedOver
		}
	}
	a.mu.Lock()
	delete(a.settled, in.Call)
	a.mu.Unlock()
	a.flights.Forget(flight)
	close(st.done)
}

// unanswered says that the agent of a delivery is gone, and left no answer: it was stopped before it had given one, or lost with its supervisor.
type unanswered struct{ why string }

func (e *unanswered) Error() string { return e.why }

// settle makes an answer of a child that has ended. That no activity waits for the delivery is only noted where there is none: what a finished child left
// is read again by whoever comes next.
func (a *Activities) settle(ctx context.Context, child *agent.Child, in work.PassInput, st *settlement) (*answer, error) {
	exit, err := child.Result()
	a.cfg.Reached(Exited, in.Call)
	var ans *answer
	var spawn *supervisor.SpawnError
	switch {
	case errors.As(err, &spawn):
		ans, err = a.unstarted(ctx, st, spawn.Err)
	case errors.Is(err, agent.ErrLost):
		ans, err = a.lost(ctx, in, st)
	case err == nil:
		ans, err = a.collect(ctx, st, in, exit)
	}
	if none := (*unanswered)(nil); errors.As(err, &none) {
		err = st.over(ctx, errors.Join(err, clear(st.dir)))
	}
	if ans != nil {
		a.cfg.Reached(Answered, in.Call)
	}
	return ans, err
}

// lost ends what a lost supervisor has left. An answer that can be seen to be whole counts all the same.
func (a *Activities) lost(ctx context.Context, in work.PassInput, st *settlement) (*answer, error) {
	if err := reap(ctx, st.dir); err != nil {
		return nil, err
	}
	if ans, err := st.l.result(ctx); ans != nil || err != nil {
		return ans, err // another worker of this host has read it, and removed it
	}
	ans, err := a.leftBehind(ctx, st.l, in, st.number, st.dir)
	if ans == nil && err == nil {
		err = &unanswered{"the supervisor of the call was lost, and the agent with it"}
	}
	return ans, err
}

// collect puts what a finished child left into the store, whatever that is; the first answer of a call counts. One that was stopped has no answer, unless
// it had given it already.
func (a *Activities) collect(ctx context.Context, st *settlement, in work.PassInput, exit agent.Exit) (*answer, error) {
	out, err := outputsOf(st.dir)
	if err != nil {
		return nil, err
	}
	if exit.Killed && !exit.TimedOut && !agent.Complete(st.kind, out.stdout) {
		return nil, &unanswered{"the agent was stopped: " + exit.KillCause}
	}
	ans, err := a.answerFrom(ctx, st, in, exit, out)
	if err != nil {
		return nil, err
	}
	ans.Recovered = st.recovered
	return a.stored(ctx, st, ans)
}

// stored puts an answer into the store, and gives the one that counts. Then nothing of the call is needed here any more.
func (a *Activities) stored(ctx context.Context, st *settlement, ans *answer) (*answer, error) {
	won, err := st.l.put(ctx, *ans)
	if err != nil {
		return nil, fmt.Errorf("store the answer of call %s: %w", st.l.call, err)
	}
	if !won { // the one that counts came first
		if ans, err = st.l.result(ctx); err != nil {
			return nil, err
		}
	}
	a.sweep(ctx, filepath.Dir(st.dir))
	return ans, nil
}
