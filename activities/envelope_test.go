package activities

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/run"
)

func TestEnvelopeIsStored(t *testing.T) {
	for _, row := range []struct {
		play    string
		outcome run.Category
		message string
	}{
		{"spill", "ok", "<hidden>\n```html\n<!DOCTYPE html>\n<html><hidden></html>\n```\n"},
		{"spill and fail", "claude-p-exit-nonzero", strings.Repeat("x", 296) + "<hidden>"},
	} {
		t.Run(row.play, func(t *testing.T) {
			h := spilling(t, row.play)
			res, err := h.pass(context.Background())
			require.NoError(t, err)
			require.Equal(t, row.outcome, res.Outcome)
			require.NotNil(t, res.Envelope)
			require.NotEmpty(t, res.Envelope.Raw, "something was hidden")
			raw, err := blobs.Get(context.Background(), h.s, res.Envelope.Digest)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(raw), "\n"))
			var e struct {
				Result string  `json:"result"`
				USD    float64 `json:"total_cost_usd"`
			}
			require.NoError(t, json.Unmarshal(raw, &e))
			require.Equal(t, row.message, e.Result)
			require.InDelta(t, 0.25, e.USD, 1e-9)

			again, err := h.passOf(context.Background(), h.worker())
			require.NoError(t, err)
			require.Equal(t, res.Envelope, again.Envelope)
		})
	}
}
