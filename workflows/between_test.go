package workflows_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

func TestACallThatIsLostAgainAndAgainPausesTheRun(t *testing.T) {
	w := newWorld(t, twoPasses)
	w.agent.will(call(1, 1), times(20, breaks(errors.New("the store is damaged")))...)
	w.onPause(func() { w.signal("resume", message{}) })
	w.done()
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1)
	require.Equal(t, run.PassFailed, paused[0].Reason)
	require.Contains(t, paused[0].Detail, "lost 20 times")
	require.Equal(t, 21, w.agent.calls[call(1, 1)], "nothing was judged: the call keeps its id")
}

func TestAPauseWhileAPromptIsComposedCallsNobody(t *testing.T) {
	w := newWorld(t, twoPasses)
	asked := false
	w.composing = func(in work.ComposeInput) {
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

func TestADirectoryThatIsLostBeforeItIsSealedIsWrittenAgain(t *testing.T) {
	w := newWorld(t, twoPasses)
	w.dir.shorter = true
	w.done()
	require.Contains(t, w.trace, "Rebuild")
	require.Equal(t, run.Done, w.dir.state(t).Status)
}
