package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/bench/peer"
)

// passbook is Passbook with an embedded server and one worker. A workflow is a run, and a step is a pass.
type passbook struct {
	*env
	programs string // folder of the programs
	logs     string // folder that agents write to, also in a sandbox
	worker   *exec.Cmd
	log      string

	mu   sync.Mutex
	defs map[string]operations.Definition // by work
	ids  map[string]string                // of runs, by the name of the directory
}

func newPassbook(s settings, programs, dir, logs string) *passbook {
	return &passbook{env: &env{settings: s, temp: dir}, programs: programs, logs: logs,
		log: filepath.Join(dir, "worker.log"), defs: map[string]operations.Definition{}, ids: map[string]string{}}
}

func (p *passbook) start(ctx context.Context) error {
	if err := os.MkdirAll(p.temp, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(p.empty(), fmt.Appendf(nil, "sandbox: {write: [%q]}\n", p.logs), 0o600); err != nil {
		return err
	}
	if err := p.connect(ctx); err != nil {
		return err
	}
	return p.rework(ctx)
}

func (p *passbook) rework(context.Context) error {
	out, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(p.programs, "worker"))
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.environment(), p.temp, out, out
	if err := cmd.Start(); err != nil {
		return errors.Join(err, out.Close())
	}
	p.worker = cmd
	return out.Close()
}

func (p *passbook) kill() error {
	return errors.Join(p.worker.Process.Kill(), waited(p.worker))
}

// stop ends the worker, then the server.
func (p *passbook) stop(ctx context.Context) error {
	var err error
	if w := p.worker; w != nil && w.ProcessState == nil {
		err = errors.Join(w.Process.Signal(syscall.SIGTERM), waited(w))
		if err != nil {
			text, unread := os.ReadFile(p.log)
			err = errors.Join(fmt.Errorf("end the worker: %w: %s", err, text[max(0, len(text)-500):]), unread)
		}
	}
	p.worker = nil
	if p.op.Client != nil {
		p.op.Client.Close()
		p.op.Client = nil
	}
	_, stopped := local.Stop(context.WithoutCancel(ctx), p.state(), readyTimeout)
	return errors.Join(err, stopped)
}

func (p *passbook) do(ctx context.Context, q peer.Request) (peer.Reply, error) {
	return peer.Do(ctx, p, q)
}

func (p *passbook) dir(name string) projector.Dir {
	return projector.Dir{Dir: rundir.At(filepath.Join(p.temp, "runs", name))}
}

// definition writes a pipeline once for each kind of work.
func (p *passbook) definition(w peer.Work) (operations.Definition, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key, err := json.Marshal(w)
	if err != nil {
		return operations.Definition{}, err
	}
	def, made := p.defs[string(key)]
	if !made {
		def, err = pipelineFor(filepath.Join(p.temp, fmt.Sprint("definition-", len(p.defs))), w)
		p.defs[string(key)] = def
	}
	return def, err
}

func (p *passbook) keep(name, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids[name] = id
}

func (p *passbook) Start(ctx context.Context, name string, w peer.Work) (string, error) {
	def, err := p.definition(w)
	if err != nil {
		return "", err
	}
	st, err := p.op.Start(ctx, def, p.dir(name))
	p.keep(name, st.RunID)
	return name, err
}

// Await counts the passes in the journal.
func (p *passbook) Await(ctx context.Context, name string) (answers int, err error) {
	p.mu.Lock()
	id := p.ids[name]
	p.mu.Unlock()
	if err := p.op.Client.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
		return 0, err
	}
	for line, err := range p.dir(name).Lines(0) {
		if err != nil {
			return answers, err
		}
		if line.Event.Kind == run.KindPassEnd {
			answers++
		}
	}
	return answers, nil
}

// paused waits until a run has recorded that it is paused.
func (p *passbook) paused(ctx context.Context, name string) error {
	for {
		now, err := p.dir(name).Now()
		if err != nil || now.State.Status == run.Paused {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("run %s is %s: %w", name, now.State.Status, context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (p *passbook) Wake(ctx context.Context, name string) error {
	_, err := p.op.Resume(ctx, p.dir(name), operations.Reopening{})
	return err
}

func (p *passbook) Fork(ctx context.Context, name string, step int) (string, error) {
	checkpoint, err := checkpointOf(step)
	if err != nil {
		return "", err
	}
	from, err := p.op.Origin(ctx, p.dir(name).Root)
	if err != nil {
		return "", err
	}
	fork := name + "-fork"
	st, err := p.op.Branch(ctx, from, operations.Branching{Mode: run.ModeFork, From: checkpoint, Dir: p.dir(fork).Root})
	p.keep(fork, st.RunID)
	return fork, err
}

func (p *passbook) Revert(ctx context.Context, name string, step int) error {
	checkpoint, err := checkpointOf(step)
	if err != nil {
		return err
	}
	_, err = p.op.Revert(ctx, p.dir(name), operations.Reverting{To: checkpoint})
	return err
}

func (p *passbook) processes() []int {
	pids := []int{p.worker.Process.Pid}
	if st, err := local.Read(p.state()); err == nil && st.Server != nil {
		pids = append(pids, st.Server.Process.PID)
	}
	return pids
}

func (p *passbook) stored() (map[string]int64, error) {
	database, err := bytesIn(filepath.Join(p.state(), "server"))
	runs, err2 := bytesIn(filepath.Join(p.temp, "runs"))
	store, err3 := bytesIn(filepath.Join(p.state(), "store"))
	return map[string]int64{"database": database, "run directory": runs, "store": store}, errors.Join(err, err2, err3)
}
