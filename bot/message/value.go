package message

import (
	"context"
	"encoding/json"
	"fmt"

	"ductor/orchestrator"
)

// SaveValue stores a value as JSON under the given key, and replaces the previous value.
func SaveValue(ctx context.Context, in orchestrator.CardStore, key string, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		err = in.SaveCard(ctx, key, data)
	}
	if err != nil {
		return fmt.Errorf("keep %s: %w", key, err)
	}
	return nil
}

// LoadValue returns the value that SaveValue stored. It returns false if no value is stored.
func LoadValue[T any](ctx context.Context, in orchestrator.CardStore, key string) (value T, there bool, err error) {
	data, err := in.LoadCard(ctx, key)
	if err == nil && len(data) > 0 {
		err = json.Unmarshal(data, &value)
	}
	if err != nil {
		return value, false, fmt.Errorf("load %s: %w", key, err)
	}
	return value, len(data) > 0, nil
}
