// Package api is the table of operations on runs that every client offers, such as the command line and the MCP server.
// A row names an operation, who may use it, its input and output, the problems that it reports, and the function that
// executes it. A client adds only its own form: flags and text, or a protocol.
//
// What an operation does to a run is in package operations. Which statuses allow it is in the table of statuses of
// package run.
package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/redact"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Host is the program that offers the operations.
type Host struct {
	Settings config.Settings
	Secrets  *redact.Redactor
	Trust    bool             // read run directories of other users
	IDs      bool             // clients name runs by ids only, and no directories
	Program  string           // the starter in messages, quoted for a shell
	Clock    func() run.Clock // when and where times are shown

	// Flag names an input in messages, as a user writes it; nil: its key in JSON.
	Flag func(key string) string

	// Suggest returns names of runs that resemble an unknown one, for the end of a message; nil: none.
	Suggest func(name string) string

	// Rows remembers the rows of run directories between lists; nil: each list reads all of them.
	Rows *operations.Rows

	// Connect finds or starts a server and a worker. The caller releases the connection.
	Connect func(context.Context) (o operations.Operator, release func(), err error)
}

// Access is what a client may do.
type Access string

// The levels of access. Each includes those before it.
const (
	CanRead    Access = "read"    // read runs
	CanDecide  Access = "decide"  // answer the questions of runs
	CanOperate Access = "operate" // start and control runs
)

// Accesses lists the levels, the lowest first.
func Accesses() []Access { return []Access{CanRead, CanDecide, CanOperate} }

// Includes reports whether a client with this access may use an operation that requires the other one.
func (a Access) Includes(other Access) bool {
	return slices.Index(Accesses(), a) >= slices.Index(Accesses(), other)
}

// Operation is a row of the table.
type Operation struct {
	Name        string
	Path        string // of its address in the HTTP API; empty: /v1/runs/{id}/NAME
	Command     string // of the starter that does the same; empty: one with its name
	Summary     string // in the imperative
	Details     string // more sentences; empty: none
	Access      Access // that a client requires
	Destructive bool   // it may end work or replace data
	Repeatable  bool   // a repetition with the same input changes nothing more
	Foreign     bool   // its output contains texts of agents and repositories, which are not instructions
	Problems    []Code // that it may report
	Input       reflect.Type
	Output      reflect.Type

	call func(ctx context.Context, h Host, input []byte) (any, error)
}

// Call executes an operation. The input is a JSON object; an unknown key is an [InputError].
func (o Operation) Call(ctx context.Context, h Host, input []byte) (any, error) {
	return o.call(ctx, h, input)
}

// does completes a row with its function.
func does[I, O any](row Operation, f func(context.Context, Host, I) (O, error)) Operation {
	row.Path, row.Command = cmp.Or(row.Path, "/v1/runs/{id}/"+row.Name), cmp.Or(row.Command, row.Name)
	row.Input, row.Output = reflect.TypeFor[I](), reflect.TypeFor[O]()
	row.call = func(ctx context.Context, h Host, input []byte) (any, error) {
		var in I
		if err := decode(input, &in); err != nil {
			return nil, invalid("%s: %w; correct the input", row.Name, err)
		}
		return f(ctx, h, in)
	}
	return row
}

func decode(input []byte, in any) error {
	if len(bytes.TrimSpace(input)) == 0 {
		input = []byte("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.DisallowUnknownFields()
	if err := dec.Decode(in); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is data after the object")
	}
	return nil
}

// Find returns the directory of a named run, or suggests similar names.
func (h Host) Find(name string) (rundir.Dir, error) {
	if h.IDs {
		return h.findByID(name)
	}
	d, err := operations.FindHere(h.Settings.StateDir, name, h.Trust)
	if (name == "" || name == ".") && errors.Is(err, rundir.ErrNoRun) {
		return operations.FindOn(h.Settings.StateDir, h.Settings.RunRoot, d.Root, h.Trust, err)
	}
	var unknown *operations.NameError
	if !errors.As(err, &unknown) || len(unknown.Found) > 0 {
		return d, err
	}
	if listed, err := h.findByID(name); err == nil { // in the folder for runs, as lists show it
		return listed, nil
	}
	if h.Suggest != nil {
		err = fmt.Errorf("%w%s", err, h.Suggest(name))
	}
	return d, err
}

// flag names an input in a message.
func (h Host) flag(key string) string {
	if h.Flag == nil {
		return key
	}
	return h.Flag(key)
}

// find is Find for a name that must be given.
func (h Host) find(name string) (rundir.Dir, error) {
	if name == "" {
		return rundir.Dir{}, invalid("find a run: the name is empty; name a run by its id or its directory")
	}
	return h.Find(name)
}

// atHome returns the directory of a named run and its claim, unless the directory is a copy.
func (h Host) atHome(name string) (rundir.Dir, run.Claim, error) {
	d, err := h.find(name)
	if err != nil {
		return d, run.Claim{}, err
	}
	claim, err := d.Claim()
	if err == nil {
		err = operations.AtHome(h.Settings.StateDir, claim, d)
	}
	return d, claim, err
}

// connected executes a function with a connection to the server of a run.
func connected[T any](ctx context.Context, h Host, f func(operations.Operator) (T, error)) (T, error) {
	o, release, err := h.Connect(ctx)
	if err != nil {
		var none T
		return none, err
	}
	defer release()
	return f(o)
}

// InputError is an error in the input of an operation. Nothing was started or changed.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

func invalid(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }
