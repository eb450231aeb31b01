package store

import (
	"encoding/json"
	"fmt"
	"time"
)

// The JSON in the database has its own types, or the tags of nouns, so that renaming a field of the domain loses nothing stored.

func encode(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode JSON to store: %w", err)
	}
	return string(text), nil
}

// encodeList gives JSON, and nothing for an empty list.
func encodeList[T any](list []T) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	return encode(list)
}

func decode(text string, into any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("decode stored JSON: %w", err)
	}
	return nil
}

// millis is how times are kept; a zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// blob keeps nil bytes from becoming NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// atMost keeps a negative limit from meaning "all", as it does to SQLite.
func atMost(limit int) int { return max(limit, 0) }
