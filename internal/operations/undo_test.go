package operations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

// TestStartKeepsWhatMayHaveStarted: what an answer leaves open is kept, and the next start finds out.
func TestStartKeepsWhatMayHaveStarted(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, row := range map[string]struct {
		ctx  context.Context
		err  error
		left bool
	}{
		"done":             {t.Context(), nil, false},
		"not sent":         {t.Context(), errors.New("write the environment: disk full"), false},
		"refused":          {t.Context(), serviceerror.NewInvalidArgument("no"), false},
		"not permitted":    {t.Context(), serviceerror.NewPermissionDenied("no", ""), false},
		"no namespace":     {t.Context(), serviceerror.NewNamespaceNotFound("gone"), false},
		"server is away":   {t.Context(), serviceerror.NewUnavailable("away"), true},
		"server is late":   {t.Context(), serviceerror.NewDeadlineExceeded("late"), true},
		"server is hurt":   {t.Context(), serviceerror.NewInternal("hurt"), true},
		"already started":  {t.Context(), serviceerror.NewWorkflowExecutionAlreadyStarted("there", "", ""), true},
		"this side late":   {t.Context(), fmt.Errorf("start: %w", context.DeadlineExceeded), true},
		"this side is cut": {over, errors.New("connection closed"), true},
	} {
		err := ofRequest(row.ctx, row.err)
		require.Equal(t, row.left, mayHaveStarted(err), name)
		if row.err != nil {
			require.EqualError(t, err, row.err.Error(), name)
			require.ErrorIs(t, err, row.err, name)
		}
		if err == nil {
			continue
		}
		dir := projector.At(filepath.Join(t.TempDir(), "r"))
		begun, claimed := Operator{}.take(dir, run.Claim{Version: 1, RunID: "r"})
		require.NoError(t, claimed)
		require.ErrorIs(t, begun.refused(t.Context(), err), row.err, name)
		_, there := os.Lstat(dir.Root)
		require.Equal(t, row.left, there == nil, "%s: the directory exists only if the workflow may have started", name)
	}
}
