package codec

import (
	"context"
	"errors"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
)

// panickingConverter is the converter of clients and workers. In a workflow, a payload with a missing key causes a
// panic: for an error the SDK would fail the run or drop the signal, after a panic the run waits for a worker that
// has the key.
type panickingConverter struct {
	converter.DataConverter
	inWorkflow bool
}

// WithWorkflowContext is called by the SDK for workflows.
func (p panickingConverter) WithWorkflowContext(workflow.Context) converter.DataConverter {
	return panickingConverter{DataConverter: p.DataConverter, inWorkflow: true}
}

// WithContext is called by the SDK for activities and clients.
func (p panickingConverter) WithContext(context.Context) converter.DataConverter { return p }

// FromPayload decodes one value.
func (p panickingConverter) FromPayload(payload *commonpb.Payload, value any) error {
	return p.panicOnKeyError(p.DataConverter.FromPayload(payload, value))
}

// FromPayloads decodes several values.
func (p panickingConverter) FromPayloads(payloads *commonpb.Payloads, values ...any) error {
	return p.panicOnKeyError(p.DataConverter.FromPayloads(payloads, values...))
}

func (p panickingConverter) panicOnKeyError(err error) error {
	if key := (*KeyError)(nil); p.inWorkflow && errors.As(err, &key) {
		panic(key)
	}
	return err
}
