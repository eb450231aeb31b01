package tgapi

// Button is one inline button. Data comes back to us when it is pressed; at most 64 bytes.
type Button struct {
	Text string `json:"text"`
	Data string `json:"data"`
}

// Keyboard is the rows of buttons below a message. A nil Keyboard is none.
type Keyboard [][]Button
