package codec

import (
	"context"
	"errors"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
)

// patient is the converter of clients and workers. In a workflow a payload whose key is missing is no error: the SDK would fail the run for an input
// that it cannot read, and drop a signal. It is a panic there, which the SDK takes for a fault of this worker: the run waits for one that has the key.
type patient struct {
	converter.DataConverter
	inWorkflow bool
}

// WithWorkflowContext is called by the SDK for what workflows read.
func (p patient) WithWorkflowContext(workflow.Context) converter.DataConverter {
	return patient{DataConverter: p.DataConverter, inWorkflow: true}
}

// WithContext is called by the SDK for what activities and clients read.
func (p patient) WithContext(context.Context) converter.DataConverter { return p }

// FromPayload reads one value.
func (p patient) FromPayload(payload *commonpb.Payload, value any) error {
	return p.orPanic(p.DataConverter.FromPayload(payload, value))
}

// FromPayloads reads several values.
func (p patient) FromPayloads(payloads *commonpb.Payloads, values ...any) error {
	return p.orPanic(p.DataConverter.FromPayloads(payloads, values...))
}

func (p patient) orPanic(err error) error {
	if key := (*KeyError)(nil); p.inWorkflow && errors.As(err, &key) {
		panic(key)
	}
	return err
}
