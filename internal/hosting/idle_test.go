package hosting

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// idleServer has these schedules.
type idleServer struct {
	client.ScheduleClient
	schedules []*client.ScheduleListEntry
	err       error
}

func (s *idleServer) List(context.Context, client.ScheduleListOptions) (client.ScheduleListIterator, error) {
	return &entries{s.schedules}, s.err
}

// idleClient is a client of a server without open workflows.
type idleClient struct {
	client.Client
	server *idleServer
}

func (idleClient) CountWorkflow(context.Context,
	*workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	return &workflowservice.CountWorkflowExecutionsResponse{}, nil
}

func (c idleClient) ScheduleClient() client.ScheduleClient { return c.server }

type entries struct{ left []*client.ScheduleListEntry }

func (e *entries) HasNext() bool { return len(e.left) > 0 }

func (e *entries) Next() (*client.ScheduleListEntry, error) {
	next := e.left[0]
	e.left = e.left[1:]
	return next, nil
}

func TestSchedulesKeepTheServerInUse(t *testing.T) {
	times := []time.Time{time.Now().Add(time.Hour)}
	for name, row := range map[string]struct {
		server idleServer
		want   bool
	}{
		"none": {idleServer{}, false},
		"paused": {idleServer{schedules: []*client.ScheduleListEntry{{ID: "a", Paused: true,
			NextActionTimes: times}}}, false},
		"its times ended": {idleServer{schedules: []*client.ScheduleListEntry{{ID: "a"}}}, false},
		"one of two": {idleServer{schedules: []*client.ScheduleListEntry{{ID: "a", Paused: true},
			{ID: "b", NextActionTimes: times}}}, true},
		"unknown": {idleServer{err: errors.New("no server")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, row.want, inUse(t.Context(), idleClient{server: &row.server}, "default", t.TempDir()))
		})
	}
}
