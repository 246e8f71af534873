// Package point counts the points at which a process can be killed, and kills it at one of them: before every step of
// the write functions, in the middle of every write, and between the phases of a call. It is for test programs and uses
// SIGKILL only.
package point

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
)

// Env is the environment variable with the [Plan] of a process, as JSON.
const Env = "PASSBOOK_TEST_POINTS"

// Plan configures what happens to a process.
type Plan struct {
	DieAt  int    `json:"die_at,omitempty"` // number of the point, 1-based; 0: never
	Log    string `json:"log,omitempty"`    // a file with a line for every point
	Died   string `json:"died,omitempty"`   // a file with the point of the kill
	Await  string `json:"await,omitempty"`  // a file that must exist before the kill
	Forget bool   `json:"forget,omitempty"` // never finds an earlier answer, which recovery must not do
}

// Point is one point.
type Point struct {
	N    int    `json:"n"`    // counted from 1 in its process
	At   string `json:"at"`   // the next action: a step, "middle of write", or a point of a call
	Path string `json:"path"` // path of a step, or the call
}

// Setting returns the plan as an environment variable.
func (p Plan) Setting() string {
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err) // texts and numbers always marshal
	}
	return Env + "=" + string(raw)
}

// Find reads this process's plan. Without a plan, the process is never killed.
func Find() (Plan, error) {
	var p Plan
	raw, ok := os.LookupEnv(Env)
	if !ok {
		return p, nil
	}
	if err := json.Unmarshal([]byte(raw), &p); err != nil {
		return p, fmt.Errorf("read %s: %w", Env, err)
	}
	return p, nil
}

// Counter counts the points of this process. It may be used by several goroutines; they pass one at a time.
type Counter struct {
	plan Plan
	mu   sync.Mutex
	n    int
}

// NewCounter returns a counter that starts at zero.
func NewCounter(p Plan) *Counter { return &Counter{plan: p} }

// Disk is the file system with this counter as its hook.
func (c *Counter) Disk() disk.Disk { return disk.Disk{Hook: c.Step} }

// Step is one point before a step, and another in the middle of a write.
func (c *Counter) Step(s disk.Step) error {
	if err := c.Reach(string(s.Op), s.Path, nil); err != nil {
		return err
	}
	if s.Op != disk.OpWrite || len(s.Data) < 2 {
		return nil
	}
	return c.Reach("middle of write", s.Path, func() error { return half(s) })
}

// half executes the first half of a write. The offset of the file is then where the step would continue.
func half(s disk.Step) error {
	f, err := os.OpenFile(s.Path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(s.Data[:len(s.Data)/2])
	return errors.Join(err, f.Close())
}

// Reach counts one point, and does not return if the process is killed there. It calls last before the kill.
func (c *Counter) Reach(at, path string, last func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	p := Point{N: c.n, At: at, Path: path}
	if err := note(c.plan.Log, p); err != nil {
		return err
	}
	if c.n != c.plan.DieAt {
		return nil
	}
	if last != nil {
		if err := last(); err != nil {
			return err
		}
	}
	if err := note(c.plan.Died, p); err != nil {
		return err
	}
	await(c.plan.Await)
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		return err
	}
	select {} // wait for the signal
}

// await returns when a file exists.
func await(file string) {
	for file != "" {
		if _, err := os.Stat(file); err == nil {
			return
		}
		time.Sleep(time.Millisecond) // the victim polls, not the test
	}
}

// note appends one line to a file. It is not durable: only the process is killed, not the machine.
func note(file string, p Point) error {
	if file == "" {
		return nil
	}
	line, err := json.Marshal(p)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
