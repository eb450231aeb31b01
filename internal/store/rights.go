package store

import (
	"encoding/json"
	"fmt"

	"ductor/cli"
	"ductor/orchestrator"
)

type rightsRow struct {
	Of    string   `json:"of"`
	Mode  string   `json:"mode,omitempty"`
	Rules []string `json:"rules,omitempty"`
	Tools []string `json:"tools,omitempty"`
}

// encodeRights gives JSON, and nothing for the rights of the chat.
func encodeRights(r orchestrator.Rights) (string, error) {
	if r.Of == orchestrator.RightsOfChat {
		return "", nil
	}
	text, err := json.Marshal(rightsRow{Of: string(r.Of), Mode: string(r.Mode), Rules: r.Rules, Tools: r.Tools})
	if err != nil {
		return "", fmt.Errorf("encode the rights of a turn: %w", err)
	}
	return string(text), nil
}

func decodeRights(text string) (orchestrator.Rights, error) {
	var row rightsRow
	if err := decode(text, &row); err != nil {
		return orchestrator.Rights{}, err
	}
	return orchestrator.Rights{
		Of: orchestrator.RightsOf(row.Of), Mode: cli.PermissionMode(row.Mode), Rules: row.Rules, Tools: row.Tools,
	}, nil
}
