package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/projector"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// ScheduleRow is one schedule of a list. Times are in the form of [run.Time].
type ScheduleRow struct {
	Name           string       `json:"name"`
	Times          []string     `json:"times"` // cron expressions, and intervals as "every 1h0m0s"
	TimeZone       string       `json:"time_zone"`
	JitterS        int64        `json:"jitter_s"`
	Overlap        string       `json:"overlap"`
	CatchUpWindowS int64        `json:"catch_up_window_s"`
	PauseOnFailure bool         `json:"pause_on_failure"`
	Paused         bool         `json:"paused"`
	Note           string       `json:"note"`
	Config         string       `json:"config"`
	Task           string       `json:"task"`
	Source         string       `json:"source"`
	OutputRoot     string       `json:"output_root"`
	Host           string       `json:"host"`
	Store          string       `json:"store"`
	CreatedBy      string       `json:"created_by"`
	CreatedAt      string       `json:"created_at"`
	Next           []string     `json:"next"`
	Starts         int          `json:"starts"`          // since it was created
	Skipped        int          `json:"skipped_overlap"` // by the overlap policy
	Missed         int          `json:"missed_catch_up"` // outside the catch-up window
	Recent         []Occurrence `json:"recent"`          // newest first, at most ten
	Problem        string       `json:"problem"`         // why the next run will not start, or the last one did not
}

// Status of an occurrence that has no run.
const (
	OccurrenceWaiting   = "waiting" // for a worker of the host, or for a retry
	OccurrenceFailed    = "not started"
	OccurrenceCancelled = "cancelled"
)

// Occurrence is one due time of a schedule.
type Occurrence struct {
	At        string `json:"at"` // when it was due
	StartedAt string `json:"started_at"`
	Open      bool   `json:"open"`   // not ended: the overlap policy counts it
	Status    string `json:"status"` // of its run; of one without: waiting, not started or cancelled
	RunID     string `json:"run_id"`
	Directory string `json:"directory"`
	Problem   string `json:"problem"`
	Workflow  string `json:"workflow_id"`

	execution string
	state     enumspb.WorkflowExecutionStatus
}

// ScheduleNames lists the schedules that this program created, sorted.
func (o Operator) ScheduleNames(ctx context.Context) ([]string, error) {
	all, err := o.Client.ScheduleClient().List(ctx, client.ScheduleListOptions{PageSize: pageSize})
	if err != nil {
		return nil, fmt.Errorf("list the schedules of namespace %s: %w", o.Namespace, err)
	}
	names := []string{}
	for all.HasNext() {
		e, err := all.Next()
		if err != nil {
			return nil, fmt.Errorf("list the schedules of namespace %s: %w", o.Namespace, err)
		}
		if e.WorkflowType.Name == workflows.ScheduledName {
			names = append(names, e.ID)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Schedules describes the schedules that this program created, sorted by name.
func (o Operator) Schedules(ctx context.Context) ([]ScheduleRow, error) {
	names, err := o.ScheduleNames(ctx)
	if err != nil {
		return nil, err
	}
	rows := []ScheduleRow{}
	for _, name := range names {
		row, err := o.Schedule(ctx, name)
		if gone := (*ScheduleError)(nil); errors.As(err, &gone) && gone.Known != nil { // deleted meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Schedule describes one schedule.
func (o Operator) Schedule(ctx context.Context, name string) (ScheduleRow, error) {
	_, d, s, err := o.own(ctx, name, "describe")
	if err != nil {
		return ScheduleRow{}, err
	}
	row := ScheduleRow{
		Name: name, Times: timesOf(d.Schedule.Spec), TimeZone: cmp.Or(d.Schedule.Spec.TimeZoneName,
			"UTC"), JitterS: int64(d.Schedule.Spec.Jitter.Seconds()), Overlap: overlapName(d.Schedule.Policy.Overlap),
		CatchUpWindowS: int64(d.Schedule.Policy.CatchupWindow.Seconds()),
		PauseOnFailure: d.Schedule.Policy.PauseOnFailure, Paused: d.Schedule.State.Paused, Note: d.Schedule.State.Note,
		Config: s.Config, Task: s.Task, Source: s.Source, OutputRoot: s.Root, Host: s.Host, Store: s.Store,
		CreatedBy: s.By, CreatedAt: run.Time(d.Info.CreatedAt),
		Next: []string{}, Starts: d.Info.NumActions, Skipped: d.Info.NumActionsSkippedOverlap,
		Missed: d.Info.NumActionsMissedCatchupWindow, Recent: []Occurrence{},
	}
	for _, at := range d.Info.NextActionTimes {
		row.Next = append(row.Next, run.Time(at))
	}
	for _, a := range slices.Backward(d.Info.RecentActions) {
		x, err := o.occurrence(ctx, a.StartWorkflowResult)
		if err != nil {
			return row, err
		}
		row.Recent = append(row.Recent, *x)
	}
	row.Problem = o.problemOf(row, s)
	return row, nil
}

// problemOf returns why the next run will not start, as far as this host knows, or why the last one did not.
func (o Operator) problemOf(row ScheduleRow, s contract.Schedule) string {
	if s.Host == o.Host {
		if _, err := o.definitionOf(contract.Occurrence{Schedule: s}); err != nil {
			return err.Error()
		}
	}
	for _, x := range row.Recent {
		if status := run.Status(x.Status); x.Open && row.Overlap != "allow-all" &&
			status.NeedsOperator() {
			return fmt.Sprintf("run %.8s is %s, and nothing starts until it ends (overlap %s); see: starter status %s",
				x.RunID,
				status, row.Overlap, shell.Quote(x.Directory))
		}
	}
	if len(row.Recent) > 0 && (row.Recent[0].Status == OccurrenceFailed || row.Recent[0].Status == OccurrenceWaiting) {
		return row.Recent[0].Problem
	}
	return ""
}

// timesOf returns the expressions as they were written.
func timesOf(s *client.ScheduleSpec) []string {
	times := []string{}
	for _, c := range s.Calendars {
		times = append(times, cmp.Or(c.Comment, "calendar"))
	}
	for _, i := range s.Intervals {
		times = append(times, "every "+short(i.Every))
	}
	return times
}

// short formats a duration without its zeros: 1h, not 1h0m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// startsOf returns what a schedule starts. The error: this program did not create it.
func (o Operator) startsOf(d *client.ScheduleDescription) (contract.Schedule, error) {
	var s contract.Schedule
	action, ok := d.Schedule.Action.(*client.ScheduleWorkflowAction)
	if !ok || action.Workflow != workflows.ScheduledName || len(action.Args) != 1 {
		return s, errors.New("it was not created by starter; use temporal schedule")
	}
	raw, ok := action.Args[0].(*commonpb.Payload)
	if !ok {
		return s, errors.New("its input cannot be read")
	}
	if err := o.converter().FromPayload(raw, &s); err != nil {
		return s, fmt.Errorf("read its input: %w", err)
	}
	return s, nil
}

func (o Operator) converter() converter.DataConverter {
	if o.Converter == nil {
		return converter.GetDefaultDataConverter()
	}
	return o.Converter
}

// occurrence describes the result of one action of a schedule.
func (o Operator) occurrence(ctx context.Context, w *client.ScheduleWorkflowExecution) (*Occurrence, error) {
	if w == nil {
		return &Occurrence{Status: OccurrenceFailed, Problem: "Temporal did not start it"}, nil
	}
	d, err := o.Client.DescribeWorkflowExecution(ctx, w.WorkflowID, w.FirstExecutionRunID)
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return &Occurrence{Workflow: w.WorkflowID, Status: "unknown", Problem: "Temporal no longer has it"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("describe workflow %s: %w", w.WorkflowID, err)
	}
	x := o.occurrenceOf(d.GetWorkflowExecutionInfo())
	switch {
	case x.RunID != "":
		o.standOf(&x)
		if x.state == enumspb.WORKFLOW_EXECUTION_STATUS_FAILED {
			x.Problem = o.failureOf(ctx, x)
		}
	case x.Open:
		x.Status, x.Problem = OccurrenceWaiting, waitsFor(d)
	case x.state == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		x.Status = OccurrenceCancelled
	default:
		x.Status, x.Problem = OccurrenceFailed, o.failureOf(ctx, x)
	}
	return &x, nil
}

func (o Operator) occurrenceOf(x *workflowpb.WorkflowExecutionInfo) Occurrence {
	out := Occurrence{
		StartedAt: run.Time(x.GetStartTime().AsTime()),
		Open:      x.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		Workflow:  x.GetExecution().GetWorkflowId(),
		execution: x.GetExecution().GetRunId(), state: x.GetStatus(),
	}
	if at, there := field[time.Time](x.GetSearchAttributes().GetIndexedFields(), "TemporalScheduledStartTime"); there {
		out.At = run.Time(at)
	}
	memo := x.GetMemo().GetFields()
	for key, to := range map[string]*string{workflows.MemoRun: &out.RunID, workflows.MemoDirectory: &out.Directory} {
		p := memo[key]
		if p == nil || o.converter().FromPayload(p, to) == nil {
			continue
		}
		if err := converter.GetDefaultDataConverter().FromPayload(p, to); err != nil {
			*to = "" // it was encrypted with another key
		}
	}
	return out
}

// standOf reads the status of a run from its directory. Without a directory on this host, only whether it is open is
// known.
func (o Operator) standOf(x *Occurrence) {
	now, err := projector.At(x.Directory).Now()
	claim, unread := projector.At(x.Directory).Claim()
	switch {
	case err == nil && unread == nil && claim.RunID == x.RunID && now.Tail.Seq > 0:
		x.Status = string(now.State.Status)
	case x.Open:
		x.Status = "open"
	case x.state == enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		x.Status = string(run.Failed)
	default:
		x.Status = "ended"
	}
}

// waitsFor returns why an open occurrence has no run yet.
func waitsFor(d *workflowservice.DescribeWorkflowExecutionResponse) string {
	for _, p := range d.GetPendingActivities() {
		if f := p.GetLastFailure(); f != nil {
			return fmt.Sprintf("attempt %d failed: %s", p.GetAttempt(), f.GetMessage())
		}
		if p.GetLastStartedTime() != nil {
			return ""
		}
	}
	return "no worker of its host takes it; start one there: starter server start"
}

// failureOf returns the error of an occurrence that started nothing.
func (o Operator) failureOf(ctx context.Context, x Occurrence) string {
	err := o.Client.GetWorkflow(ctx, x.Workflow, x.execution).Get(ctx, nil)
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return app.Message()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
