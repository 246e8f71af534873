package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strconv"

	"github.com/passbook-run/passbook/run"
)

// BookMark says which bytes state.json has. While it has them, the lists in it that grow with every pass are taken over as they stand, and are
// neither read nor written record by record: a pass costs the same however many came before it.
type BookMark struct {
	Size   int64  `json:"size"`
	CRC32C uint32 `json:"crc32c"` // finds an edit or a torn disk; a forger is not looked for
}

func markOf(raw []byte) *BookMark {
	return &BookMark{Size: int64(len(raw)), CRC32C: crc32.Checksum(raw, crc32.MakeTable(crc32.Castagnoli))}
}

// growingLists are the members of state.json that grow with every pass. The longest is taken out first, and put back last.
var growingLists = [...]string{passRecords, "artifactBackups", "checkpoints"}

const passRecords = "passRecords"

// older are the first elements of the growing lists, as they stand in state.json: complete lines, without the brackets around them.
type older map[string][]byte

// written reads state.json; the lists that grow stay text if it is the file that meta.json speaks of.
func (p *projector) written() (PipelineState, error) {
	raw, err := os.ReadFile(p.dir.Path(StateFile))
	if err != nil {
		return PipelineState{}, err
	}
	mark := p.meta.Records
	if mark == nil || mark.Size != int64(len(raw)) || *mark != *markOf(raw) {
		p.changed = mark != nil
		return p.dir.parse(raw)
	}
	kept := older{}
	for _, list := range growingLists {
		raw, kept[list] = cutList(raw, list)
	}
	b, err := p.dir.parse(raw)
	b.older = kept
	return b, err
}

// encode writes state.json: what there was, and behind it what is new.
func (b PipelineState) encode() ([]byte, error) {
	raw, err := marshal(b)
	if err != nil {
		return nil, err
	}
	for _, list := range slices.Backward(growingLists[:]) {
		raw = putList(raw, list, b.older[list])
	}
	return raw, nil
}

// parse judges a state.json that was read back: the older elements stand where they should, and everything else is JSON. They were parsed
// themselves when they were new.
func (o older) parse(back []byte) error {
	for _, list := range growingLists {
		if len(o[list]) == 0 {
			continue
		}
		from := listAt(back, list)
		rest, found := bytes.CutPrefix(back[from:], append([]byte{'\n'}, o[list]...))
		if !found {
			return fmt.Errorf("its %s do not begin with those of the file before", list)
		}
		back = append(bytes.Clone(back[:from]), bytes.TrimPrefix(rest, []byte{','})...)
	}
	if !json.Valid(back) {
		return errors.New("it is not JSON")
	}
	return nil
}

// cutList takes the elements out of a list of state.json. Both parts are as marshal writes them.
func cutList(raw []byte, list string) (rest, elements []byte) {
	from := listAt(raw, list)
	if raw[from] == closing(raw[from-1]) {
		return raw, nil // it is empty
	}
	closed := bytes.Index(raw[from:], []byte{'\n', ' ', ' ', closing(raw[from-1])})
	elements = raw[from+1 : from+closed]
	return append(bytes.Clone(raw[:from]), raw[from+closed+3:]...), elements
}

// putList puts elements in front of those of a list.
func putList(raw []byte, list string, elements []byte) []byte {
	if len(elements) == 0 {
		return raw
	}
	from := listAt(raw, list)
	end := ","
	if raw[from] == closing(raw[from-1]) {
		end = "\n  "
	}
	out := make([]byte, 0, len(raw)+len(elements)+4)
	out = append(append(append(out, raw[:from]...), '\n'), elements...)
	return append(append(out, end...), raw[from:]...)
}

// listAt is the place behind the opening bracket of a list. Every key of state.json is always there, and no text in it has a line feed.
func listAt(raw []byte, list string) int {
	key := "\n  \"" + list + "\": "
	return bytes.Index(raw, []byte(key)) + len(key) + 1
}

func closing(opening byte) byte {
	if opening == '[' {
		return ']'
	}
	return '}'
}

// holds says that one of the older elements of a list of strings is this one.
func (o older) holds(list, text string) bool {
	line, err := marshal(text)
	return err == nil && bytes.Contains(o[list], bytes.TrimSuffix(line, []byte{'\n'}))
}

// last is the highest number among the older records.
func (o older) last() int {
	records := o[passRecords]
	_, key, _ := bytes.Cut(records[bytes.LastIndex(records, []byte("\n    \""))+1:], []byte{'"'})
	number, _, _ := bytes.Cut(key, []byte{'"'})
	n, _ := strconv.Atoi(string(number))
	return n
}

// unfold reads the older records, if an event writes one of them again: a pass that was done once more.
func (b *PipelineState) unfold(e run.Event) error {
	if e.Kind != run.KindPassEnd || len(b.older[passRecords]) == 0 {
		return nil
	}
	var p run.PassEnd
	e.Decode(&p)
	if p.Number > b.older.last() {
		return nil
	}
	all := ByNumber[PassRecord]{}
	if err := json.Unmarshal(append(append([]byte{'{'}, b.older[passRecords]...), '}'), &all); err != nil {
		return fmt.Errorf("read the records of %s again: %w", StateFile, err)
	}
	for number, r := range b.PassRecords {
		all[number] = r
	}
	b.PassRecords = all
	delete(b.older, passRecords)
	return nil
}
