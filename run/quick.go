package run

// The readers of this file take from the payloads that a stream is full of what the fold needs, and nothing else. Each falls back on
// encoding/json when anything is out of the ordinary. A member that comes twice is merged, as encoding/json does.

// decoded reads a payload with encoding/json.
func decoded[T any](e *Event) (p T) {
	e.Decode(&p)
	return p
}

func readPassStart(e *Event) (p PassStart) {
	m := payload(e)
	for key, value, ok := m.next(); ok && !m.odd; key, value, ok = m.next() {
		switch string(key) {
		case "call":
			m.text(value, &p.Call)
		case "attempt":
			number(&m, value, &p.Attempt)
		default:
			m.pass(key, value, &p.Pass)
		}
	}
	if m.odd {
		return decoded[PassStart](e)
	}
	return p
}

// pass reads what all events of a pass carry.
func (m *members) pass(key, value []byte, p *Pass) {
	switch string(key) {
	case "step":
		m.text(value, &p.Step)
	case "number":
		number(m, value, &p.Number)
	case "in_round":
		number(m, value, &p.InRound)
	case "set":
		m.text(value, &p.Set)
	case "round":
		number(m, value, &p.Round)
	case "dir":
		m.text(value, &p.Dir)
	case "member":
		m.text(value, &p.Member)
	case "role":
		m.text(value, &p.Role)
	default:
		m.other(key)
	}
}

func readPassAttempt(e *Event) (p PassAttempt) {
	m := payload(e)
	for key, value, ok := m.next(); ok && !m.odd; key, value, ok = m.next() {
		switch string(key) {
		case "category":
			m.text(value, &p.Category)
		case "message":
			m.text(value, &p.Message)
		case "attempt":
			number(&m, value, &p.Attempt)
		case "retry_in_ms":
			number(&m, value, &p.RetryInMS)
		case "late":
			number(&m, value, &p.Late)
		case "judged":
			m.flag(value, &p.Judged)
		case "spend":
			if p.Spend == nil {
				p.Spend = new(Spend)
			}
			m.spend(value, p.Spend)
		default:
			m.pass(key, value, &p.Pass)
		}
	}
	if m.odd {
		return decoded[PassAttempt](e)
	}
	return p
}

func readPassEnd(e *Event) (p PassEnd) {
	m := payload(e)
	for key, value, ok := m.next(); ok && !m.odd; key, value, ok = m.next() {
		switch string(key) {
		case "outcome":
			m.text(value, &p.Outcome)
		case "duration_ms":
			number(&m, value, &p.DurationMS)
		case "reply":
			m.blobOrNone(value, &p.Reply)
		case "artifact":
			m.blobOrNone(value, &p.Artifact)
		case "tree":
			m.blobOrNone(value, &p.Tree)
		case "modified":
			m.flag(value, &p.Modified)
		case "validation":
			m.validation(value, &p.Validation)
		case "verdict":
			m.text(value, &p.Verdict)
		case "approved":
			p.Approved = new(bool)
			m.flag(value, p.Approved)
		case "as":
			m.text(value, &p.As)
		case "value":
			m.text(value, &p.Value)
		case "spend":
			m.spend(value, &p.Spend)
		case "last_in_round":
			m.flag(value, &p.LastInRound)
		case "review":
			m.text(value, &p.Review)
		case "next":
			m.place(value, &p.Next)
		default:
			m.pass(key, value, &p.Pass)
		}
	}
	if m.odd {
		return decoded[PassEnd](e)
	}
	return p
}

func readArtifactUpdated(e *Event) (p ArtifactUpdated) {
	m := payload(e)
	for key, value, ok := m.next(); ok && !m.odd; key, value, ok = m.next() {
		if string(key) == "artifact" {
			m.blob(value, &p.Artifact)
		} else {
			m.other(key)
		}
	}
	if m.odd {
		return decoded[ArtifactUpdated](e)
	}
	return p
}

func readNoteAppended(e *Event) (p NoteAppended) {
	m := payload(e)
	for key, value, ok := m.next(); ok && !m.odd; key, value, ok = m.next() {
		switch string(key) {
		case "note":
			m.text(value, &p.Note)
		case "whole":
			m.blob(value, &p.Whole)
		default:
			m.other(key)
		}
	}
	if m.odd {
		return decoded[NoteAppended](e)
	}
	return p
}

func readPhaseStart(e *Event) (p PhaseStart) {
	var title []byte
	m := payload(e)
	for key, value, ok := m.next(); ok && !m.odd; key, value, ok = m.next() {
		switch string(key) {
		case "phase_key":
			m.text(value, &p.Key)
		case "title":
			title = value
		case "round":
			number(&m, value, &p.Round)
		default:
			m.other(key)
		}
	}
	if p.Key == "" && title != nil {
		m.text(title, &p.Title)
	}
	if m.odd {
		return decoded[PhaseStart](e)
	}
	return p
}

func readPhaseEnd(e *Event) (p PhaseEnd) {
	var title []byte
	m := payload(e)
	for key, value, ok := m.next(); ok && !m.odd; key, value, ok = m.next() {
		switch string(key) {
		case "phase_key":
			m.text(value, &p.Key)
		case "title":
			title = value
		case "outcome":
			m.text(value, &p.Outcome)
		case "round":
			number(&m, value, &p.Round)
		case "repeats":
			m.flag(value, &p.Repeats)
		case "next":
			m.place(value, &p.Next)
		default:
			m.other(key)
		}
	}
	if p.Key == "" && title != nil {
		m.text(title, &p.Title)
	}
	if m.odd {
		return decoded[PhaseEnd](e)
	}
	return p
}

// readScore leaves out whatever the fold does not count with.
func readScore(e *Event) (p ScoreRecorded) {
	m := payload(e)
	for key, value, ok := m.next(); ok && !m.odd; key, value, ok = m.next() {
		switch {
		case string(key) != "score":
			m.other(key)
		case string(value) == "null":
			p.Score = nil
		default:
			p.Score = new(float64)
			m.money(value, p.Score)
		}
	}
	if m.odd {
		return decoded[ScoreRecorded](e)
	}
	return p
}

// readHandoffRequested reads everything but artifacts: a hand-off that has some is left to encoding/json.
func readHandoffRequested(e *Event) (p HandoffRequested) {
	m := payload(e)
	for key, value, ok := m.next(); ok && !m.odd; key, value, ok = m.next() {
		switch string(key) {
		case "handoff_id":
			m.text(value, &p.HandoffID)
		case "phase":
			m.text(value, &p.Phase)
		case "question":
			m.text(value, &p.Question)
		case "handoff_type":
			m.text(value, &p.HandoffType)
		case "trigger":
			m.text(value, &p.Trigger)
		case "round":
			number(&m, value, &p.Round)
		case "available_actions":
			p.Actions = m.texts(value)
		case "verdict":
			m.text(value, &p.Verdict)
		case "approved":
			p.Approved = new(bool)
			m.flag(value, p.Approved)
		case "loop_max_rounds":
			number(&m, value, &p.LoopMaxRounds)
		case "last_output":
			m.text(value, &p.LastOutput)
		case "digest":
			m.text(value, &p.Digest)
		case "artifacts", "remind_ms", "expires_at", "on_expiry":
			m.odd = true
		default:
			m.other(key)
		}
	}
	if m.odd {
		return decoded[HandoffRequested](e)
	}
	return p
}

func readHandoffDecided(e *Event) (p HandoffDecided) {
	m := payload(e)
	for key, value, ok := m.next(); ok && !m.odd; key, value, ok = m.next() {
		switch string(key) {
		case "handoff_id":
			m.text(value, &p.HandoffID)
		case "action":
			m.text(value, &p.Action)
		case "feedback":
			m.text(value, &p.Feedback)
		case "note":
			m.text(value, &p.Note)
		case "decided_by":
			m.text(value, &p.DecidedBy)
		case "decided_at":
			m.text(value, &p.DecidedAt)
		case "redo":
			m.text(value, &p.Redo)
		case "next":
			m.place(value, &p.Next)
		default:
			m.other(key)
		}
	}
	if m.odd {
		return decoded[HandoffDecided](e)
	}
	return p
}

// into begins with the members of an object inside m's.
func (m *members) into(object []byte) members {
	in := membersOf(object)
	m.odd = m.odd || in.odd
	return in
}

func (m *members) blob(value []byte, to *Blob) {
	in := m.into(value)
	for key, value, ok := in.next(); ok && !in.odd; key, value, ok = in.next() {
		switch string(key) {
		case "digest":
			in.text(value, &to.Digest)
		case "size":
			number(&in, value, &to.Size)
		case "chars":
			number(&in, value, &to.Chars)
		default:
			in.other(key)
		}
	}
	m.odd = m.odd || in.odd
}

func (m *members) blobOrNone(value []byte, to **Blob) {
	if *to == nil {
		*to = new(Blob)
	}
	m.blob(value, *to)
}

func (m *members) place(value []byte, to **Place) {
	if *to == nil {
		*to = new(Place)
	}
	in := m.into(value)
	for key, value, ok := in.next(); ok && !in.odd; key, value, ok = in.next() {
		switch string(key) {
		case "stage":
			number(&in, value, &(*to).Stage)
		case "round":
			number(&in, value, &(*to).Round)
		case "step":
			number(&in, value, &(*to).Step)
		default:
			in.other(key)
		}
	}
	m.odd = m.odd || in.odd
}

func (m *members) spend(value []byte, to *Spend) {
	in := m.into(value)
	for key, value, ok := in.next(); ok && !in.odd; key, value, ok = in.next() {
		switch string(key) {
		case "tokens":
			in.tokens(value, &to.Tokens)
		case "usd":
			in.money(value, &to.USD)
		case "estimated":
			in.flag(value, &to.Estimated)
		default:
			in.other(key)
		}
	}
	m.odd = m.odd || in.odd
}

func (m *members) tokens(value []byte, to *Tokens) {
	in := m.into(value)
	for key, value, ok := in.next(); ok && !in.odd; key, value, ok = in.next() {
		switch string(key) {
		case "input":
			number(&in, value, &to.Input)
		case "output":
			number(&in, value, &to.Output)
		case "cache_read":
			number(&in, value, &to.CacheRead)
		case "cache_write":
			number(&in, value, &to.CacheWrite)
		default:
			in.other(key)
		}
	}
	m.odd = m.odd || in.odd
}

// validation reads whether all checks passed, and how many warnings there are, not what they say.
func (m *members) validation(value []byte, to *Validation) {
	in := m.into(value)
	for key, value, ok := in.next(); ok && !in.odd; key, value, ok = in.next() {
		switch string(key) {
		case "passed":
			in.flag(value, &to.Passed)
		case "warnings":
			to.Warnings = make([]string, in.count(value))
		default:
			in.other(key)
		}
	}
	m.odd = m.odd || in.odd
}

// texts reads a list of plain strings.
func (m *members) texts(array []byte) []string {
	list := make([]string, 0, m.count(array))
	for i := 1; len(list) < cap(list); {
		i = skipSpace(array, i)
		if array[i] == ',' {
			i = skipSpace(array, i+1)
		}
		end := passValue(array, i)
		var text string
		m.text(array[i:end], &text)
		list, i = append(list, text), end
	}
	return list
}

// count counts the elements of an array.
func (m *members) count(array []byte) (n int) {
	if len(array) == 0 || array[0] != '[' {
		m.odd = true
		return 0
	}
	i := skipSpace(array, 1)
	for ; i < len(array) && array[i] != ']'; n++ {
		if i = passValue(array, i); i < 0 {
			m.odd = true
			return 0
		}
		if i = skipSpace(array, i); i < len(array) && array[i] == ',' {
			i = skipSpace(array, i+1)
		}
	}
	return n
}
