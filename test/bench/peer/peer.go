// Package peer defines what test/bench asks of a program that executes the same work with another engine (tools/peers),
// and how: JSON requests on standard input, one per line, each with one answer on standard output. A program is worker
// and client of its engine at once. It ends when its input does.
package peer

import (
	"context"
	"errors"
	"time"
)

// ErrNotOffered reports that an engine does not have an operation.
var ErrNotOffered = errors.New("not offered")

// Work describes a workflow of steps that are executed one after another. Each step is durable: its answer is stored
// before the next one begins.
type Work struct {
	Steps int `json:"steps"`
	// Agent is the program that a step starts, and whose answer it reads; empty: a step does nothing.
	Agent []string `json:"agent,omitempty"`
	Wait  int      `json:"wait,omitempty"` // wait for [Engine.Wake] after this number of steps; 0: do not wait
}

// Engine executes workflows. Names of workflows are those that Start and Fork return.
type Engine interface {
	// Start starts a workflow and returns its name.
	Start(ctx context.Context, id string, w Work) (string, error)
	// Await waits until a workflow has ended, and returns the number of steps of which it has the answers.
	Await(ctx context.Context, name string) (int, error)
	// Wake continues a workflow that waits.
	Wake(ctx context.Context, name string) error
	// Fork starts a workflow with the answers of another one's steps before this one. The first step is 1.
	Fork(ctx context.Context, name string, step int) (string, error)
	// Revert makes a workflow continue with this step, which it has executed.
	Revert(ctx context.Context, name string, step int) error
}

// Actions of a request.
const (
	DoRun    = "run" // start workflows and wait until they have ended
	DoStart  = "start"
	DoAwait  = "await"
	DoWake   = "wake"
	DoFork   = "fork"
	DoRevert = "revert"
)

// Request asks for one action.
type Request struct {
	Do       string   `json:"do"`
	Names    []string `json:"names"` // of the workflows: several for run and start, else one
	Work     Work     `json:"work"`
	Parallel int      `json:"parallel,omitempty"` // maximum number of workflows at once
	Step     int      `json:"step,omitempty"`
}

// Reply is the answer to a request. The first reply, to no request, reports that the engine is ready.
type Reply struct {
	Names    []string        `json:"names,omitempty"`    // of the workflows
	Each     []time.Duration `json:"each,omitempty"`     // from the start of each workflow to its end
	Wall     time.Duration   `json:"wall,omitempty"`     // of all together
	Answers  int             `json:"answers,omitempty"`  // of steps that the workflows have
	Executed int64           `json:"executed,omitempty"` // steps that the program has executed, in all

	Error      string `json:"error,omitempty"`
	NotOffered bool   `json:"not_offered,omitempty"`
}

// Err returns the error of a reply.
func (r Reply) Err() error {
	switch {
	case r.NotOffered:
		return ErrNotOffered
	case r.Error != "":
		return errors.New(r.Error)
	}
	return nil
}
