package activities

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/fakes3"
	"github.com/passbook-run/passbook/workflows/contract"
)

// onS3 moves the harness to a store that hosts share.
func onS3(t *testing.T, agent string) (*harness, *fakes3.Gate) {
	t.Helper()
	h := newHarness(t, "answer")
	url, gate := fakes3.StartGated(t)
	h.s = must(store.Open(t.Context(), url))(t)
	h.runAgent(agent)
	return h, gate
}

func TestMissingProgramIsRetriedOnOtherHost(t *testing.T) {
	for _, agent := range []string{"/no/such/agent", "no-such-agent"} {
		h, _ := onS3(t, agent)
		_, err := h.pass(context.Background())
		app := failed(t, err, contract.ErrNoProgram)
		require.Contains(t, app.Message(), "start agent "+agent)
		claims := must(h.s.List(t.Context(), "calls/"))(t)
		require.Empty(t, claims, "nothing is claimed, so another host makes the call")
	}
}

func TestUnreachableStoreErrorNamesHost(t *testing.T) {
	h, gate := onS3(t, "sh")
	gate.Close()
	e := env(context.Background())
	e.RegisterActivityWithOptions(redactingInterceptor(h.acts, h.acts.RunPass), activity.RegisterOptions{
		Name: contract.RunPass,
	})
	_, err := e.ExecuteActivity(contract.RunPass, h.in)
	app := failed(t, err, contract.ErrNoStore)
	require.False(t, app.NonRetryable(), "work on the directory is tried again")
	var from contract.Heartbeat
	require.NoError(t, app.Details(&from))
	require.Equal(t, "here", from.Host)
	require.Empty(t, h.acts.stores, "it is opened anew, with the credentials of then")
}

func TestReadRoundReportsNeeds(t *testing.T) {
	h, _ := onS3(t, "/opt/my agent")
	var got []string
	h.acts.cfg.Needs = func(url string, programs []string) { got = append(append(got, url), programs...) }
	must(h.acts.ReadRound(t.Context(), contract.RoundInput{Store: h.s.URL(), PlanUse: contract.PlanUse{Plan: h.plan},
		Round: 1}))(t)
	require.Equal(t, []string{h.s.URL(), "/opt/my agent"}, got)
}
