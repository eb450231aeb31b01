package host

import "ductor/cli"

// Labels that the runner stores with a run.
const (
	labelAgent        = "agent"
	labelMode         = "mode"
	labelConversation = "conversation"
	labelSetting      = "setting"
)

func labelsOf(p cli.Purpose) map[string]string {
	return map[string]string{
		labelAgent: string(p.Agent), labelMode: string(p.Mode), labelConversation: string(p.Conversation),
		labelSetting: p.Setting,
	}
}

// PurposeOf converts the labels of a run back to a purpose.
func PurposeOf(labels map[string]string) cli.Purpose {
	return cli.Purpose{
		Agent: cli.Agent(labels[labelAgent]), Mode: cli.Mode(labels[labelMode]),
		Conversation: cli.Conversation(labels[labelConversation]), Setting: labels[labelSetting],
	}
}
