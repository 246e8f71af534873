package disk

import "os"

// Reader is a file that is open for reading only.
type Reader struct{ *os.File }

// Open opens a file for reading.
func Open(path string) (Reader, error) {
	f, err := os.Open(path)
	return Reader{f}, err
}

// Close closes the file. It returns no error, because nothing was written.
func (r Reader) Close() {
	if err := r.File.Close(); err != nil {
		return
	}
}
