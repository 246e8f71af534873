package agent

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJoinStartsCallOnce(t *testing.T) {
	var flights InFlightCalls
	var starts, joins atomic.Int32
	children := make(chan *Child, 16)
	c := commandIn(t.TempDir(), "wait")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			flight, joined, err := flights.Join("g0.035.1.-.1",
				func() (*Child, error) { starts.Add(1); return begin(c) })
			if err != nil {
				return
			}
			if joined {
				joins.Add(1)
			}
			children <- flight.Child
		})
	}
	wg.Wait()
	close(children)
	require.EqualValues(t, 1, starts.Load())
	require.EqualValues(t, 15, joins.Load())
	first := <-children
	for child := range children {
		require.Same(t, first, child)
	}
	flights.KillAll("end of test")
	require.True(t, result(t, first).Killed)
}

func TestCallIsKeptUntilRemoved(t *testing.T) {
	var flights InFlightCalls
	once := func(t *testing.T, play string) (*InFlightCall, bool) {
		c := commandIn(t.TempDir(), play)
		flight, joined, err := flights.Join("a", func() (*Child, error) { return begin(c) })
		require.NoError(t, err)
		return flight, joined
	}
	first, _ := once(t, "say 5")
	require.Zero(t, result(t, first.Child).Code)
	again, joined := once(t, "say 5")
	require.True(t, joined, "ended, but its result was not removed yet")
	require.Same(t, first, again)
	flights.Remove(first)
	second, joined := once(t, "wait")
	require.False(t, joined)
	flights.Remove(first)
	third, joined := once(t, "wait")
	require.True(t, joined, "only the call that it was removed for is forgotten")
	require.Same(t, second, third)
	found, err := flights.Kill("a", "end of test")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "end of test", result(t, second.Child).KillCause)
	found, err = flights.Kill("b", "no such call")
	require.NoError(t, err)
	require.False(t, found)
}

func TestFailedStartIsReturnedToAllWaiters(t *testing.T) {
	var flights InFlightCalls
	broken := errors.New("broken")
	entered, release := make(chan struct{}), make(chan struct{})
	errs := make(chan error, 2)
	go func() {
		_, _, err := flights.Join("a", func() (*Child, error) { close(entered); <-release; return nil, broken })
		errs <- err
	}()
	<-entered
	go func() {
		_, joined, err := flights.Join("a", func() (*Child, error) { return nil, broken })
		_ = joined // it joined the failing start, or came after it and failed too
		errs <- err
	}()
	close(release)
	require.ErrorIs(t, <-errs, broken)
	require.ErrorIs(t, <-errs, broken)
	c := commandIn(t.TempDir(), "wait")
	_, joined, err := flights.Join("a", func() (*Child, error) { return begin(c) })
	require.NoError(t, err)
	require.False(t, joined)
	flights.KillAll("end of test")
}
