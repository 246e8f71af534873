// Package traces derives OpenTelemetry spans from the events of a run, and exports them.
//
// One fold makes the spans of a live worker and of an export, so they cannot differ: ids follow from the id of the run
// and the number of the event that begins a span. The same events always result in the same spans.
package traces

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/passbook-run/passbook/internal/records"
)

// Span is a span as OTLP encodes it.
type Span = tracepb.Span

// ID returns the id of the trace of a run, which meta.json has too.
func ID(runID string) string { return records.TraceID(runID) }

const spanIDSize = 8

// spanID returns the id of a span of a run.
func spanID(runID, key string) []byte {
	sum := sha256.Sum256([]byte("passbook span " + runID + " " + key))
	return sum[:spanIDSize]
}

// callKey identifies the span of a call.
func callKey(call string, attempt int) string { return fmt.Sprintf("call %s %d", call, attempt) }

// Parent returns the value of TRACEPARENT for the agent of a call: its spans are children of the span of the call.
func Parent(runID, call string, attempt int) string {
	return "00-" + ID(runID) + "-" + hex.EncodeToString(spanID(runID, callKey(call, attempt))) + "-01"
}

// open is a span that has not ended.
type open struct {
	*Span
	name  string // of a stage
	round int
	set   string
	busy  time.Time // when the last span inside it ended
	up    *open
}

func nanos(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{
		Value: &commonpb.AnyValue_StringValue{StringValue: valid(value)}}}
}

func number(key string, value int64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: value}}}
}

func amount(key string, value float64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{
		Value: &commonpb.AnyValue_DoubleValue{DoubleValue: value}}}
}

func isTrue(key string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}}}
}

// put adds attributes; empty texts and zero numbers are left out.
func (o *open) put(all ...*commonpb.KeyValue) {
	for _, kv := range all {
		switch v := kv.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			if v.StringValue == "" {
				continue
			}
		case *commonpb.AnyValue_IntValue:
			if v.IntValue == 0 {
				continue
			}
		}
		o.Attributes = append(o.Attributes, kv)
	}
}

// mostMessage bounds the message of a status, in bytes.
const mostMessage = 500

// fails sets the status of a span.
func (o *open) fails(kind, message string) {
	if len(message) > mostMessage {
		message = message[:mostMessage]
	}
	o.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: valid(message)}
	o.put(text("error.type", kind))
}

// mostEvents bounds the events of a span.
const mostEvents = 128

// note adds an event to a span.
func (o *open) note(name string, at time.Time, all ...*commonpb.KeyValue) {
	if len(o.Events) >= mostEvents {
		o.DroppedEventsCount++
		return
	}
	holder := open{Span: &Span{}}
	holder.put(all...)
	o.Events = append(o.Events, &tracepb.Span_Event{Name: name, TimeUnixNano: nanos(at), Attributes: holder.Attributes})
}

func seqKey(kind string, seq int64) string { return kind + " " + strconv.FormatInt(seq, 10) }
