package run

import "math/bits"

// This file scans JSON without decoding it. encoding/json reads every byte twice and makes a value of each; the fold
// needs a few members of an event. Everything unusual is left to encoding/json, so a line has one interpretation.

// maxDepth is encoding/json's: deeper nesting is an error there too.
const maxDepth = 10000

// scanValue checks the JSON value at i and returns the index after it, or -1 if there is none. depth counts the values
// around it.
func scanValue(b []byte, i, depth int) int {
	if i >= len(b) {
		return -1
	}
	switch c := b[i]; {
	case c == '"':
		return scanString(b, i+1)
	case c == '{':
		return scanObject(b, i+1, depth+1)
	case c == '[':
		return scanArray(b, i+1, depth+1)
	case c == '-' || isDigit(c):
		return scanNumber(b, i)
	case c == 't':
		return scanWord(b, i, "true")
	case c == 'f':
		return scanWord(b, i, "false")
	case c == 'n':
		return scanWord(b, i, "null")
	}
	return -1
}

// span is the position of a member of an object: its key without quotes, its value.
type span struct{ key, keyEnd, value, end int }

// scanObject checks an object from the byte after its brace.
func scanObject(b []byte, i, depth int) int {
	if depth > maxDepth {
		return -1
	}
	i = skipSpace(b, i)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		s := scanMember(b, i, depth)
		if s.end < 0 {
			return -1
		}
		if i = skipSpace(b, s.end); i >= len(b) {
			return -1
		}
		if b[i] == '}' {
			return i + 1
		}
		if b[i] != ',' {
			return -1
		}
		i++
	}
}

// scanMember checks a member of an object; its end is -1 if there is none.
func scanMember(b []byte, i, depth int) (s span) {
	s = scanKey(b, i)
	if s.end >= 0 {
		s.end = scanValue(b, s.value, depth)
	}
	return s
}

// scanKey checks a key and its colon, and returns where the value begins.
func scanKey(b []byte, i int) (s span) {
	i = skipSpace(b, i)
	if i >= len(b) || b[i] != '"' {
		return span{end: -1}
	}
	end := scanString(b, i+1)
	if end < 0 {
		return span{end: -1}
	}
	s.key, s.keyEnd = i+1, end-1
	if i = skipSpace(b, end); i >= len(b) || b[i] != ':' {
		return span{end: -1}
	}
	s.value = skipSpace(b, i+1)
	return s
}

// scanArray checks an array from the byte after its bracket.
func scanArray(b []byte, i, depth int) int {
	if depth > maxDepth {
		return -1
	}
	i = skipSpace(b, i)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = scanValue(b, skipSpace(b, i), depth); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) {
			return -1
		}
		if b[i] == ']' {
			return i + 1
		}
		if b[i] != ',' {
			return -1
		}
		i++
	}
}

// Eight bytes at a time: a byte of each kind that matters inside a string.
const (
	ones    = 0x0101010101010101
	highs   = 0x80 * ones
	spaces  = 0x20 * ones
	quotes  = '"' * ones
	slashes = '\\' * ones
)

// eight returns the eight bytes at i, the first lowest: one load.
func eight(b []byte, i int) uint64 {
	w := b[i : i+8 : i+8]
	return uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
		uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
}

// scanString checks a string from the byte after its opening quote.
func scanString(b []byte, i int) int {
	for {
		for i+8 <= len(b) {
			x := eight(b, i)
			if found := ((x - spaces) | ((x ^ quotes) - ones) | ((x ^ slashes) - ones)) &^ x & highs; found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
			i += 8
		}
		for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
			i++
		}
		if i >= len(b) || b[i] < ' ' {
			return -1
		}
		if b[i] == '"' {
			return i + 1
		}
		if i = scanEscape(b, i+1); i < 0 {
			return -1
		}
	}
}

func scanEscape(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if i+5 > len(b) {
			return -1
		}
		for _, c := range b[i+1 : i+5] {
			if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
				return -1
			}
		}
		return i + 5
	}
	return -1
}

func scanNumber(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	switch from := i; {
	case i < len(b) && b[i] == '0':
		i++
	default:
		if i = skipDigits(b, i); i == from {
			return -1
		}
	}
	if i < len(b) && b[i] == '.' {
		from := i + 1
		if i = skipDigits(b, from); i == from {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		from := i
		if i = skipDigits(b, i); i == from {
			return -1
		}
	}
	return i
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i
}

func scanWord(b []byte, i int, word string) int {
	if end := i + len(word); end <= len(b) && string(b[i:end]) == word {
		return end
	}
	return -1
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// plain returns the content of a string of ASCII characters without escapes.
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
