package simulation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// machine is the process table of the simulated host: workers and supervisors with their agents.
type machine struct {
	w    *world
	boot string

	next *worker // that begins

	mu    sync.Mutex
	table []*simulated
}

// simulated is one process. A supervisor has a directory; its agent is a part of it.
type simulated struct {
	m       *machine
	id      process.Identity
	dir     string
	parent  process.Identity // the worker that started it
	ended   chan struct{}    // closed when it has ended
	alive   bool
	started bool // its agent
	stopped bool // it got SIGTERM
}

func (m *machine) spawn(dir string, parent process.Identity) *simulated {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.table) + 1
	p := &simulated{m: m, dir: dir, parent: parent, alive: true, ended: make(chan struct{}), id: process.Identity{
		PID: n, StartTime: fmt.Sprint(n), BootID: m.boot,
	}}
	m.table = append(m.table, p)
	return p
}

func (m *machine) find(id process.Identity) *simulated {
	if id.PID < 1 || id.PID > len(m.table) || m.table[id.PID-1].id.StartTime != id.StartTime {
		return nil
	}
	return m.table[id.PID-1]
}

// Alive is of process.Machine.
func (m *machine) Alive(id process.Identity) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.find(id)
	return p != nil && p.alive && (m.w.fault != askedAgain || p.dir == "")
}

// Signal is of process.Machine.
func (m *machine) Signal(id process.Identity, sig syscall.Signal) {
	m.mu.Lock()
	p := m.find(id)
	if p != nil && sig == syscall.SIGTERM {
		p.stopped = true
	}
	m.mu.Unlock()
	if p != nil && sig == syscall.SIGKILL {
		p.end()
	}
}

// Worker is of process.Machine.
func (m *machine) Worker() process.Identity { return m.next.proc.id }

// Start is of process.Machine.
func (m *machine) Start(worker process.Identity, dir string) (process.Identity, io.WriteCloser, chan struct{}) {
	p := m.spawn(dir, worker)
	return p.id, p, p.ended
}

// end ends a process, whatever it does.
func (p *simulated) end() {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.alive {
		p.alive = false
		close(p.ended)
	}
}

func (p *simulated) running() (alive, stopped bool) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	return p.alive, p.stopped
}

// agents returns the supervisors whose agents run.
func (m *machine) agents() []*simulated {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*simulated
	for _, p := range m.table {
		if p.alive && p.started {
			out = append(out, p)
		}
	}
	return out
}

// orphan ends the supervisors of a dead worker that wait for their byte: their pipe is closed.
func (m *machine) orphan(of *worker) {
	m.mu.Lock()
	var waiting []*simulated
	for _, p := range m.table {
		if p.alive && p.dir != "" && p.parent == of.proc.id && !p.started {
			waiting = append(waiting, p)
		}
	}
	m.mu.Unlock()
	for _, p := range waiting {
		p.end()
	}
}

// Write gets the byte that lets the agent start.
func (p *simulated) Write(b []byte) (int, error) {
	p.m.mu.Lock()
	alive := p.alive
	p.started = p.started || alive
	p.m.mu.Unlock()
	if !alive {
		return 0, syscall.EPIPE
	}
	go p.supervise()
	return len(b), nil
}

// Close closes the pipe: a supervisor that got no byte ends.
func (p *simulated) Close() error {
	p.m.mu.Lock()
	started := p.started
	p.m.mu.Unlock()
	if !started {
		p.end()
	}
	return nil
}

// supervise does what a supervisor does: it records itself, runs the agent and records its exit. It waits for its turn
// before each step.
func (p *simulated) supervise() {
	defer p.end()
	w := p.m.w
	name := w.callName(p.dir)
	if !p.turn("record " + name) {
		return
	}
	p.write(supervisor.RecordFile, supervisor.Record{Version: supervisor.Version, Process: p.id, Delivery: p.dir})
	var call supervisor.Call
	if !p.turn("start "+name) || !p.read(supervisor.CallFile, &call) {
		return
	}
	began := time.Now()
	prompt, err := os.ReadFile(call.Stdin)
	if err != nil && call.Stdin != "" {
		w.fail("the agent of %s has no prompt: %v", name, err)
		return
	}
	act := w.behave(name, string(prompt), len(call.Argv) > 1)
	time.Sleep(act.takes)
	if !p.turn("print " + name) {
		return
	}
	exit := map[string]any{"version": supervisor.Version, "delivery": p.dir, "code": act.code, "started": began,
		"duration": time.Since(began)}
	maps.Copy(exit, act.exit)
	if _, stopped := p.running(); stopped {
		var why struct {
			Cause string `json:"cause"`
		}
		p.read(supervisor.StopFile, &why)
		act.stdout, exit["killed"], exit["kill_cause"], exit["code"] = "", true, why.Cause, -1
	}
	w.leave(act, call.Dir)
	p.print(call.Stdout, act.stdout[:len(act.stdout)/2])
	if !p.turn("continue with " + name) {
		return
	}
	p.print(call.Stdout, act.stdout)
	p.print(call.Stderr, act.stderr)
	if act.replaced {
		w.check(errors.Join(os.Remove(call.Stdout), os.Mkdir(call.Stdout, 0o700)))
	}
	if act.lost || !p.turn("exit "+name) {
		return
	}
	w.calls.end(name, act.usable && exit["killed"] == nil)
	p.write(supervisor.ExitFile, exit)
}

// print writes what an agent has printed so far. The kernel's clock is not the bubble's.
func (p *simulated) print(path, text string) {
	p.m.w.check(errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, time.Now(), time.Now())))
}

// turn waits until it is the process's turn, and returns false if it was killed meanwhile.
func (p *simulated) turn(what string) bool {
	p.m.w.park(&ticket{key: "agent: " + what})
	alive, _ := p.running()
	return alive
}

func (p *simulated) write(name string, v any) {
	raw, err := json.Marshal(v)
	p.m.w.check(err)
	p.m.w.check(os.WriteFile(filepath.Join(p.dir, name), append(raw, '\n'), 0o600))
}

func (p *simulated) read(name string, v any) bool {
	raw, err := os.ReadFile(filepath.Join(p.dir, name))
	return err == nil && json.Unmarshal(raw, v) == nil
}
