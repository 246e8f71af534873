package workflows_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

func TestRepeatedlyLostCallPausesRun(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), times(20, breaks(errors.New("the store is damaged")))...)
	w.onPause(func() { w.signal("resume", message{}) })
	w.done()
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1)
	require.Equal(t, run.PassFailed, paused[0].Reason)
	require.Contains(t, paused[0].Detail, "lost 20 times")
	require.Equal(t, 21, w.agent.calls[call(1, 1)], "nothing was judged: the call keeps its id")
}

func TestPauseDuringComposeMakesNoCall(t *testing.T) {
	w := newHarness(t, twoPasses)
	asked := false
	w.composing = func(in contract.ComposeInput) {
		if in.At.Step == 1 && !asked {
			asked = true
			w.signal("pause", message{})
		}
	}
	w.onPause(func() {
		require.Len(t, w.agent.ids, 1, "the second call was not made")
		w.signal("resume", message{})
	})
	w.done()
	require.Len(t, w.agent.ids, 2)
}

func TestLostDirectoryIsRebuiltBeforeArchiving(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.dir.shorter = true
	w.done()
	require.Contains(t, w.trace, "Rebuild")
	require.Equal(t, run.Done, w.dir.state(t).Status)
}
