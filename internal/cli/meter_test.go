package cli

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
)

func TestMeterShowsLongOperations(t *testing.T) {
	var out bytes.Buffer
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := &meter{out: &out, width: 60, began: began}
	m.draw(began.Add(5 * time.Second))
	require.Empty(t, out.String(), "nothing has said what it does")
	m.report(operations.Progress{What: "Storing the inputs", Done: 7, Total: 35})
	m.draw(began.Add(900 * time.Millisecond))
	require.Empty(t, out.String(), "it has not taken long")
	m.wipe()
	require.Empty(t, out.String())
	m.draw(began.Add(4 * time.Second))
	require.Equal(t, "\r\x1b[K⠙ Storing the inputs  ████░░░░░░░░░░░░░░░░ 7/35  4s", out.String())
	out.Reset()
	m.report(operations.Progress{What: "Creating the checkout"})
	m.draw(began.Add(90 * time.Second))
	require.Equal(t, "\r\x1b[K⠹ Creating the checkout  1m 30s", out.String())
	out.Reset()
	m.wipe()
	require.Equal(t, "\r\x1b[K", out.String())
}

func TestMeterNeedsATerminal(t *testing.T) {
	var out bytes.Buffer
	a := &app{err: &outlet{to: &out}}
	wrong := errors.New("no")
	require.ErrorIs(t, a.metered(t.Context(), "it",
		func(ctx context.Context) error { require.Equal(t, t.Context(), ctx); return wrong }), wrong)
	require.Empty(t, out.String())
}
