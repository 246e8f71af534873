package client

import (
	"cmp"
	"context"
	"io/fs"
	"path/filepath"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// StartOptions describe a run. Only Definition is required.
type StartOptions struct {
	// Definition is the path of the pipeline definition, a YAML file. The files that it names are read from its folder.
	Definition string

	// Folder contains the definition and its files, such as an [embed.FS]; Definition is then a path in it. Nil: the
	// file system of this host.
	Folder fs.FS

	// Dir is the run directory. Empty: <repository>/<pipeline> in the setting run_root.
	Dir string

	// Task is what the run is to do. Prompts contain it as {{task}}. At most 8 KiB.
	Task string

	// Source is the repository or folder to work on. Empty: as in the definition.
	Source string

	// Dirty is how uncommitted changes in the source are treated: "halt", "include", "exclude" or "commit". Empty: as
	// in the definition.
	Dirty string
}

// Started is the result of [Client.Start].
type Started struct {
	RunID     string
	Directory string
	run.ShownStatus
	New      bool     // false: the directory already contained this run
	Resumed  *Resumed // the run was interrupted and continues in a new epoch; nil: it was not
	Warnings []string
}

// Start starts a run, or finds the run that its directory contains: an interrupted one is resumed, an ended one is left
// unchanged. If the definition, its files or the task differ from what the run has, nothing is changed and the error is
// a [*DirectoryError]. Start returns when Temporal has accepted the run; it does not wait for a worker.
//
// Errors: [pipeline.Problems], [*PolicyError], [*SourceError], [*DirectoryError], [*RefusedError].
func (c *Client) Start(ctx context.Context, o StartOptions) (Started, error) {
	st, err := c.start(ctx, o)
	if err != nil {
		return Started{}, public(err)
	}
	return Started{
		RunID: st.RunID, Directory: st.Dir.Root, ShownStatus: st.Status.Shown(), New: st.New, Resumed: resumed(st.Reopened),
		Warnings: st.Warnings,
	}, nil
}

func (c *Client) start(ctx context.Context, o StartOptions) (operations.Started, error) {
	def, err := o.load(price.With(c.op.Settings.Prices))
	if err != nil {
		return operations.Started{}, err
	}
	if err := def.Ask(o.Task, o.Source, o.Dirty); err != nil {
		return operations.Started{}, err
	}
	dir, err := filepath.Abs(cmp.Or(o.Dir, def.RunDir(ctx, c.op.Settings.RunRoot, def.Plan.Pipeline)))
	if err != nil {
		return operations.Started{}, err
	}
	return c.op.Start(ctx, def, rundir.At(dir))
}

func (o StartOptions) load(prices price.List) (operations.Definition, error) {
	if o.Folder != nil {
		return operations.Load(o.Folder, o.Definition, o.Definition, prices...)
	}
	return operations.LoadFile(o.Definition, prices...)
}
