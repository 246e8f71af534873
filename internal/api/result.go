package api

import (
	"context"
	"time"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
)

// AmendInput is the input of [Amend].
type AmendInput struct {
	Run    string `json:"run" jsonschema:"id of the run, the beginning of one, or its directory"`
	Config string `json:"config" jsonschema:"the changed pipeline definition, a YAML file"`
	Note   string `json:"note,omitempty" jsonschema:"a note for the journal"`
}

// Amend lets an open run adopt a changed definition.
func Amend(ctx context.Context, h Host, in AmendInput) (operations.Amended, error) {
	if in.Config == "" {
		return operations.Amended{}, invalid("name the file of the changed definition with %s", h.flag("config"))
	}
	def, err := h.LoadFile(in.Config)
	if err != nil {
		return operations.Amended{}, err
	}
	d, _, err := h.atHome(in.Run)
	if err != nil {
		return operations.Amended{}, err
	}
	return connected(ctx, h, func(o operations.Operator) (operations.Amended, error) {
		return o.Amend(ctx, def, d, in.Note)
	})
}

// PromoteInput is the input of [Promote].
type PromoteInput struct {
	Run   string `json:"run" jsonschema:"id of the run, the beginning of one, or its directory"`
	To    string `json:"to" jsonschema:"file or folder; in an existing folder, an artifact keeps its name"`
	Force bool   `json:"force,omitempty" jsonschema:"replace another file there and keep a copy beside it"`
}

// Promote copies the result of a finished run to a path. No server is needed.
func Promote(ctx context.Context, h Host, in PromoteInput) (operations.Promoted, error) {
	if in.To == "" {
		return operations.Promoted{}, invalid("name the target with %s", h.flag("to"))
	}
	d, err := h.find(in.Run)
	if err != nil {
		return operations.Promoted{}, err
	}
	return operations.Promote(ctx, d, operations.Promotion{To: in.To, Force: in.Force, Now: time.Now()})
}

// Verify runs the commands of a finished run again, on a copy of its final tree. No server is needed.
func Verify(ctx context.Context, h Host, in RunInput) (operations.Verified, error) {
	d, err := h.find(in.Run)
	if err != nil {
		return operations.Verified{}, err
	}
	own, err := host.OwnServers(h.Settings, "")
	if err != nil {
		return operations.Verified{}, err
	}
	return operations.Verify(ctx, h.Settings, d, h.Secrets, own)
}
