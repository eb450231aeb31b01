package files

// Instruction is the part of the system prompt that explains to agents how they send files with an answer.
const Instruction = "The user reads your answers in a chat. " +
	"To send a file or picture there, write [[file: PATH]] on a line of your answer, " +
	"with a path inside the project such as out/report.pdf; [[file: PATH | caption]] adds a caption. " +
	"The user gets the file after your answer, without that line. " +
	"Do so when the user wants a file, or when you made a picture worth seeing."
