package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeEngine executes all steps of a workflow when it starts.
type fakeEngine struct {
	steps   *Steps
	answers map[string]int
}

func (f *fakeEngine) Start(ctx context.Context, id string, w Work) (string, error) {
	for i := range w.Steps {
		if _, err := f.steps.Do(ctx, w, i+1); err != nil {
			return "", err
		}
	}
	f.answers[id] = w.Steps
	return id, nil
}

func (f *fakeEngine) Await(_ context.Context, name string) (int, error) { return f.answers[name], nil }
func (f *fakeEngine) Wake(context.Context, string) error                { return errors.New("it does not wait") }
func (f *fakeEngine) Fork(context.Context, string, int) (string, error) { return "forked", nil }
func (f *fakeEngine) Revert(context.Context, string, int) error         { return ErrNotOffered }

func TestServeAnswersEachRequest(t *testing.T) {
	var in, out bytes.Buffer
	for _, q := range []Request{
		{Do: DoRun, Names: []string{"a"}, Work: Work{Steps: 3}, Parallel: 2},
		{Do: DoWake, Names: []string{"a"}},
		{Do: DoRevert, Names: []string{"a"}, Step: 2},
		{Do: DoFork, Names: []string{"a"}, Step: 2},
		{Do: "sing", Names: []string{"a"}},
		{Do: DoStart},
	} {
		require.NoError(t, json.NewEncoder(&in).Encode(q))
	}
	steps := &Steps{}
	require.NoError(t, Serve(t.Context(), &fakeEngine{steps, map[string]int{}}, steps, &in, &out))
	var all []Reply
	for d := json.NewDecoder(&out); d.More(); {
		var r Reply
		require.NoError(t, d.Decode(&r))
		all = append(all, r)
	}
	require.Len(t, all, 7) // the first reports that the engine is ready
	require.Equal(t, 3, all[1].Answers)
	require.Equal(t, int64(3), all[1].Executed)
	require.Positive(t, all[1].Wall)
	require.ErrorContains(t, all[2].Err(), "does not wait")
	require.ErrorIs(t, all[3].Err(), ErrNotOffered)
	require.Equal(t, []string{"forked"}, all[4].Names)
	require.ErrorContains(t, all[5].Err(), `"sing" is not an action`)
	require.ErrorContains(t, all[6].Err(), "no workflow is named")
}

func TestStepNeedsAnAnswer(t *testing.T) {
	steps := &Steps{}
	for script, want := range map[string]string{
		`echo '{"result":""}'`: "no result", `echo '{"is_error":true,"result":"no"}'`: "no result",
		`echo yes`: "invalid character", `exit 3`: "exit status 3",
	} {
		_, err := steps.Do(t.Context(), Work{Agent: []string{"sh", "-c", script}}, 1)
		require.ErrorContains(t, err, want)
	}
	require.Zero(t, steps.executed.Load())
	answer, err := steps.Do(t.Context(), Work{Agent: []string{"sh", "-c", `cat >/dev/null; echo '{"result":"yes"}'`}}, 1)
	require.NoError(t, err)
	require.Equal(t, `{"result":"yes"}`, strings.TrimSpace(answer))
	require.Equal(t, int64(1), steps.executed.Load())
}
