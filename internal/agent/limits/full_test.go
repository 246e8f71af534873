package limits_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent/limits"
)

func TestFullWindows(t *testing.T) {
	for event, want := range map[string]int64{
		`{"status":"allowed_warning","unifiedWindows":{"five_hour":{"utilization":0.98,"resetsAt":1795530601},` +
			`"seven_day":{"utilization":0.5,"resetsAt":1795999999}}}`: 1795530601,
		`{"unifiedWindows":{"five_hour":{"utilization":1,"resetsAt":1795530601},` +
			`"seven_day":{"utilization":0.99,"resetsAt":1795999999}}}`: 1795999999,
		`{"status":"allowed_warning","utilization":0.99,"resetsAt":1795530601}`: 1795530601,
		`{"status":"allowed","utilization":0.979,"resetsAt":1795530601}`:        0,
		`{"status":"allowed","resetsAt":1795530601}`:                            0,
		`{"utilization":1,"resetsAt":1795530601,"isUsingOverage":true}`:         0,
		`{"utilization":"high"}`:                                                0, ``: 0,
	} {
		got := limits.Full(json.RawMessage(event))
		if want == 0 {
			require.True(t, got.IsZero(), event)
			continue
		}
		require.Equal(t, want, got.Unix(), event)
	}
}
