// Package point counts the moments at which a process can die, and kills it at one of them: before every step of the write functions, in the
// middle of every write, and at the turns of a call. It is for the programs of tests; SIGKILL is all that it knows.
package point

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/durable"
)

// Env is the variable with the [Plan] of a process, as JSON.
const Env = "PASSBOOK_TEST_POINTS"

// Plan says what becomes of a process.
type Plan struct {
	DieAt  int    `json:"die_at,omitempty"` // at the how many-th point, 1-based; 0: it lives
	Log    string `json:"log,omitempty"`    // a file that gets a line for every point
	Died   string `json:"died,omitempty"`   // a file that gets the point it died at
	Await  string `json:"await,omitempty"`  // a file that must be there before it dies
	Forget bool   `json:"forget,omitempty"` // it never finds an earlier answer: what recovery must not do
}

// Point is one moment.
type Point struct {
	N    int    `json:"n"`    // counted from 1 in its process
	At   string `json:"at"`   // what comes next: a step, "middle of write", or a point of a call
	Path string `json:"path"` // of a step; else the call
}

// Setting gives the plan as a variable for a process.
func (p Plan) Setting() string {
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err) // it holds nothing but texts and numbers
	}
	return Env + "=" + string(raw)
}

// Find reads this process's plan. Without one, it lives.
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

// Counter counts the points of this process. It is for any number of goroutines; they pass one by one.
type Counter struct {
	plan Plan
	mu   sync.Mutex
	n    int
}

// NewCounter begins to count.
func NewCounter(p Plan) *Counter { return &Counter{plan: p} }

// Disk is the file system with this counter under it.
func (c *Counter) Disk() durable.Disk { return durable.Disk{Hook: c.step} }

// step is one point before a step, and one more in the middle of a write.
func (c *Counter) step(s durable.Step) error {
	if err := c.Reach(string(s.Op), s.Path, nil); err != nil {
		return err
	}
	if s.Op != durable.OpWrite || len(s.Data) < 2 {
		return nil
	}
	return c.Reach("middle of write", s.Path, func() error { return half(s) })
}

// half does the first half of a write. The file's end is where the step would go on.
func half(s durable.Step) error {
	f, err := os.OpenFile(s.Path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(s.Data[:len(s.Data)/2])
	return errors.Join(err, f.Close())
}

// Reach counts one point, and does not return if the process is to die there; last is what it does before that.
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
	select {} // the signal is on its way
}

// await returns when a file is there.
func await(file string) {
	for file != "" {
		if _, err := os.Stat(file); err == nil {
			return
		}
		time.Sleep(time.Millisecond) // the victim polls, not the test
	}
}

// note adds one line to a file. It is not durable: only the process dies, not the machine.
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
