package run

import "strconv"

// members walks through the members of an object that is known to be JSON. In anything else it finds some members or none.
type members struct {
	b     []byte
	i     int
	spans []span // of the members that are left, if they are known; then i does not count
	odd   bool   // something that is left to encoding/json
}

// payload begins with the first member of an event's payload.
func payload(e *Event) members {
	if len(e.spans) > 0 {
		return members{b: e.Payload, spans: e.spans}
	}
	return membersOf(e.Payload)
}

// membersOf begins with the first member.
func membersOf(object []byte) members {
	i := skipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return members{odd: true}
	}
	return members{b: object, i: i + 1}
}

// next gives the next member: its key without quotes, its value as it stands there.
func (m *members) next() (key, value []byte, ok bool) {
	if len(m.spans) > 0 {
		s := m.spans[0]
		if m.spans = m.spans[1:]; len(m.spans) == 0 {
			m.i = len(m.b)
		}
		return m.b[s.key:s.keyEnd], m.b[s.value:s.end], true
	}
	i := skipSpace(m.b, m.i)
	if i < len(m.b) && m.b[i] == ',' {
		i++
	}
	s := scanKey(m.b, i)
	if s.end < 0 {
		return nil, nil, false
	}
	if s.end = passValue(m.b, s.value); s.end < 0 {
		return nil, nil, false
	}
	m.i = s.end
	return m.b[s.key:s.keyEnd], m.b[s.value:s.end], true
}

// passValue gives the index behind the value at i, without a look at what is inside.
func passValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	if b[i] == '"' {
		return scanString(b, i+1)
	}
	if b[i] != '{' && b[i] != '[' {
		for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
			i++
		}
		return i
	}
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = scanString(b, i+1) - 1; i < 0 {
				return -1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// other is for a key that is not asked for. encoding/json would take some spellings of a name for the name: those are left to it.
func (m *members) other(key []byte) {
	for _, c := range key {
		if c >= 0x80 || c == '\\' || 'A' <= c && c <= 'Z' {
			m.odd = true
			return
		}
	}
}

// text reads a plain string.
func (m *members) text(value []byte, to *string) {
	s, ok := plain(value)
	if !ok {
		m.odd = true
		return
	}
	*to = known(s)
}

// known makes a string of b, without a copy if it is a word that journals are full of.
func known(b []byte) string {
	switch string(b) {
	case "ok":
		return "ok"
	case ActionContinue:
		return ActionContinue
	case ActionRetryFeedback:
		return ActionRetryFeedback
	case ActionContinueWithWaiver:
		return ActionContinueWithWaiver
	case ActionHalt:
		return ActionHalt
	case HandoffFeedbackAlways:
		return HandoffFeedbackAlways
	case HandoffFeedbackOnReject:
		return HandoffFeedbackOnReject
	case TriggerApproved:
		return TriggerApproved
	case TriggerRejected:
		return TriggerRejected
	}
	return string(b)
}

// plain gives the inside of a string that stands for itself: ASCII without escapes.
func plain(value []byte) ([]byte, bool) {
	if len(value) < 2 || value[0] != '"' {
		return nil, false
	}
	inside, i := value[1:len(value)-1], 0
	for ; i+8 <= len(inside); i += 8 {
		if x := eight(inside, i); (x|((x^slashes)-ones))&highs != 0 {
			return nil, false
		}
	}
	for ; i < len(inside); i++ {
		if inside[i] >= 0x80 || inside[i] == '\\' {
			return nil, false
		}
	}
	return inside, true
}

// integer reads a whole number that certainly fits.
func integer(value []byte) (n int64, ok bool) {
	digits, negative := value, false
	if len(digits) > 0 && digits[0] == '-' {
		digits, negative = digits[1:], true
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	for _, c := range digits {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

func number[T int | int64](m *members, value []byte, to *T) {
	n, ok := integer(value)
	*to, m.odd = T(n), m.odd || !ok
}

func (m *members) flag(value []byte, to *bool) {
	switch string(value) {
	case "true":
		*to = true
	case "false":
		*to = false
	default:
		m.odd = true
	}
}

func (m *members) money(value []byte, to *float64) {
	n, err := strconv.ParseFloat(string(value), 64)
	*to, m.odd = n, m.odd || err != nil || value[0] != '-' && !isDigit(value[0])
}
