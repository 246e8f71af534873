package operations

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
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
	}
}
