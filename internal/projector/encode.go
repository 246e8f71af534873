package projector

import (
	"bytes"
	"maps"
	"reflect"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/rundir"
)

// encoder encodes the records, with the result of [disk.Marshal]. It keeps the encoded records of passes and
// checkpoints and uses those that have not changed: without it, a long run would encode all its passes again for each
// checkpoint. Records are replaced, never changed behind their pointers and slices.
type encoder struct {
	order       []string // keys of the passes, by number
	passes      map[string]*encoded[rundir.PassRecord]
	checkpoints []*encoded[rundir.CheckpointRecord]
}

// encoded is a record and its text, as an item of the document.
type encoded[T any] struct {
	record T
	text   []byte
}

// The empty lists, which the items replace. Each exists once in a document: a string contains no line break, and only a
// member of the document itself has this indentation.
const (
	noPasses      = "\n  \"passRecords\": {}"
	noCheckpoints = "\n  \"checkpoints\": []"
)

func (c *encoder) marshal(s *rundir.PipelineState) ([]byte, error) {
	passes, err := c.encodePasses(s.PassRecords)
	if err != nil {
		return nil, err
	}
	checkpoints, err := c.encodeCheckpoints(s.Checkpoints)
	if err != nil {
		return nil, err
	}
	rest := *s
	if len(passes) > 0 {
		rest.PassRecords = rundir.ByNumber[rundir.PassRecord]{}
	}
	if len(checkpoints) > 0 {
		rest.Checkpoints = []rundir.CheckpointRecord{}
	}
	raw, err := disk.Marshal(rest)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(raw)+size(passes)+size(checkpoints))
	out, raw = fill(out, raw, noPasses, passes)
	out, raw = fill(out, raw, noCheckpoints, checkpoints)
	return append(out, raw...), nil
}

// fill appends the document through an empty list, with the items in it, and returns the remaining document.
func fill(out, raw []byte, list string, items [][]byte) ([]byte, []byte) {
	if len(items) == 0 {
		return out, raw
	}
	end := bytes.Index(raw, []byte(list)) + len(list) - 1
	out = append(out, raw[:end]...)
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, "\n    "...), item...)
	}
	return append(out, "\n  "...), raw[end:]
}

// size is the number of bytes of the items in a list.
func size(items [][]byte) int {
	n := len("\n  ")
	for _, item := range items {
		n += len(",\n    ") + len(item)
	}
	return n
}

func (c *encoder) encodePasses(records rundir.ByNumber[rundir.PassRecord]) ([][]byte, error) {
	if c.passes == nil {
		c.passes = map[string]*encoded[rundir.PassRecord]{}
	}
	for key, r := range records {
		was := c.passes[key]
		if was != nil && reflect.DeepEqual(was.record, r) {
			continue
		}
		name, err := encodeItem(key)
		if err != nil {
			return nil, err
		}
		text, err := encodeItem(r)
		if err != nil {
			return nil, err
		}
		c.passes[key] = &encoded[rundir.PassRecord]{r, slices.Concat(name, []byte(": "), text)}
	}
	if len(c.passes) > len(records) {
		maps.DeleteFunc(c.passes, func(key string, _ *encoded[rundir.PassRecord]) bool {
			_, there := records[key]
			return !there
		})
	}
	c.sort()
	texts := make([][]byte, len(c.order))
	for i, key := range c.order {
		texts[i] = c.passes[key].text
	}
	return texts, nil
}

// sort orders the keys of the passes, unless they are the same as before.
func (c *encoder) sort() {
	if len(c.order) == len(c.passes) &&
		!slices.ContainsFunc(c.order, func(key string) bool { return c.passes[key] == nil }) {
		return
	}
	c.order = rundir.KeysByNumber(c.passes)
}

func (c *encoder) encodeCheckpoints(records []rundir.CheckpointRecord) ([][]byte, error) {
	c.checkpoints = c.checkpoints[:min(len(c.checkpoints), len(records))]
	texts := make([][]byte, len(records))
	for i, r := range records {
		if i == len(c.checkpoints) {
			c.checkpoints = append(c.checkpoints, nil)
		}
		if was := c.checkpoints[i]; was == nil || !reflect.DeepEqual(was.record, r) {
			text, err := encodeItem(r)
			if err != nil {
				return nil, err
			}
			c.checkpoints[i] = &encoded[rundir.CheckpointRecord]{r, text}
		}
		texts[i] = c.checkpoints[i].text
	}
	return texts, nil
}

// encodeItem encodes a value as [disk.Marshal] does for an item of a list of the document.
func encodeItem(v any) ([]byte, error) {
	text, err := disk.MarshalAt("    ", v)
	return bytes.TrimSuffix(text, []byte("\n")), err
}

// light returns the records without the lists that grow.
func light(b rundir.PipelineState) rundir.PipelineState {
	bare := rundir.NewState()
	b.PassRecords, b.PACycleRecords, b.ArtifactBackups = bare.PassRecords, bare.PACycleRecords, bare.ArtifactBackups
	b.Checkpoints, b.ErrorHistory = bare.Checkpoints, bare.ErrorHistory
	b.Cost.BySubset, b.Cost.ByPACycle = bare.Cost.BySubset, bare.Cost.ByPACycle
	return b
}
