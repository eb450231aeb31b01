package host

import (
	"ductor/cli"
	"encoding/json"
	"fmt"
)

// The labels of a run.
const (
	labelAgent        = "agent"
	labelMode         = "mode"
	labelConversation = "conversation"
	labelSetting      = "setting"
	labelMarks        = "marks"
)

// labelsOf writes a purpose and marks as labels of a run.
func labelsOf(p cli.Purpose, marks []cli.Mark) (map[string]string, error) {
	raw, err := json.Marshal(marks)
	if err != nil {
		return nil, fmt.Errorf("encode marks: %w", err)
	}
	return map[string]string{
		labelAgent: string(p.Agent), labelMode: string(p.Mode), labelConversation: string(p.Conversation),
		labelSetting: p.Setting, labelMarks: string(raw),
	}, nil
}

// PurposeOf reads the labels of a run that a Launcher started.
func PurposeOf(labels map[string]string) (cli.Purpose, []cli.Mark, error) {
	p := cli.Purpose{
		Agent: cli.Agent(labels[labelAgent]), Mode: cli.Mode(labels[labelMode]),
		Conversation: cli.Conversation(labels[labelConversation]), Setting: labels[labelSetting],
	}
	var marks []cli.Mark
	if raw := labels[labelMarks]; raw != "" {
		if err := json.Unmarshal([]byte(raw), &marks); err != nil {
			return p, nil, fmt.Errorf("read marks of a run: %w", err)
		}
	}
	return p, marks, nil
}
