package activities

import (
	"slices"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/run"
)

// toolUses returns the tool calls that an output reports, or nil.
func (a *Activities) toolUses(kind string, stdout []byte) *run.ToolUses {
	ad, ok := adapter.Find(kind)
	if !ok {
		return nil
	}
	var uses run.ToolUses
	at := map[string]int{} // in First, by id
	parser := ad.New()
	add := func(frames []adapter.Frame) {
		for _, f := range frames {
			switch i, listed := at[f.ID]; {
			case f.Kind != adapter.KindTool:
			case f.State != adapter.ToolStarted:
				if listed {
					uses.First[i].State = string(f.State)
				}
			default:
				if uses.Count++; len(uses.First) < run.MaxToolUses {
					at[f.ID] = len(uses.First)
					uses.First = append(uses.First, run.ToolUse{Name: a.cfg.Redact(f.Name), Input: a.cfg.Redact(f.Text),
						Digest: f.Digest, State: string(f.State)})
				}
			}
		}
	}
	for chunk := range slices.Chunk(stdout, 64<<10) {
		add(parser.Parse(chunk))
	}
	if add(parser.End()); uses.Count == 0 {
		return nil
	}
	return &uses
}
