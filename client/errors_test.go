package client

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func TestInternalErrorsBecomePublic(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		want func(cause) error
	}{
		"connection": {
			&host.ConnectError{Stage: host.StageTLS, Address: "a:1", Namespace: "n", What: "no TLS", Fix: "Set it"},
			func(c cause) error {
				return &ConnectError{Stage: StageTLS, Address: "a:1", Namespace: "n", Fix: "Set it", cause: c}
			},
		},
		"name": {
			&operations.NameError{What: "x", Found: []string{"x1", "x2"}},
			func(c cause) error { return &NameError{Name: "x", Matches: []string{"x1", "x2"}, cause: c} },
		},
		"refusal": {
			&operations.RefusedError{Verb: "resume", Why: "no", Undecided: true},
			func(c cause) error {
				return &RefusedError{Operation: "resume", Reason: "no", Undecided: true, cause: c}
			},
		},
		"policy": {
			&operations.PolicyError{Differences: []string{"d"}},
			func(c cause) error { return &PolicyError{Differences: []string{"d"}, cause: c} },
		},
		"source": {
			&operations.SourceError{Source: "s", Why: "dirty"},
			func(c cause) error { return &SourceError{Source: "s", Reason: "dirty", cause: c} },
		},
		"live run": {
			&operations.LiveError{Dir: "d", RunID: "r"},
			func(c cause) error { return &DirectoryError{Dir: "d", RunID: "r", cause: c} },
		},
		"copy of a run": {
			&operations.CopyError{Dir: "d", RunID: "r"},
			func(c cause) error { return &DirectoryError{Dir: "d", RunID: "r", cause: c} },
		},
		"other files": {
			&rundir.TargetError{Path: "d"},
			func(c cause) error { return &DirectoryError{Dir: "d", cause: c} },
		},
		"another run": {
			&rundir.ClaimedError{Dir: "d", Holder: run.Claim{RunID: "r"}},
			func(c cause) error { return &DirectoryError{Dir: "d", RunID: "r", cause: c} },
		},
		"no run": {rundir.ErrNoRun, func(c cause) error { return &DirectoryError{cause: c} }},
	} {
		t.Run(name, func(t *testing.T) {
			wrapped := fmt.Errorf("start: %w", row.err)
			got := public(wrapped)
			require.Equal(t, row.want(cause{wrapped}), got)
			require.Equal(t, wrapped.Error(), got.Error(), "the message is kept")
			require.ErrorIs(t, got, row.err, "the chain is kept")
		})
	}
}

func TestPublicErrorsStayAsTheyAre(t *testing.T) {
	require.NoError(t, public(nil))
	for _, err := range []error{errors.New("another error"), pipeline.Problems{{File: "f"}}} {
		require.Equal(t, err, public(err))
	}
	conflict := &run.ConflictError{Operation: run.Pause, From: run.Done}
	var found *run.ConflictError
	require.ErrorAs(t, public(&operations.RefusedError{Verb: "pause", Conflict: conflict}), &found)
	require.Same(t, conflict, found)
}
