package spi

// The kernel kinds: the events that the system itself writes. Every other kind is
// the application's. A writer of a kernel kind sets [Event.Kernel], so that a node
// which does not know the kind yet still treats it with care.
const (
	KindExecutionStarted   = "EXECUTION_STARTED"
	KindExecutionSuspended = "EXECUTION_SUSPENDED" // a park: the execution waits
	KindExecutionResumed   = "EXECUTION_RESUMED"
	KindExecutionCompleted = "EXECUTION_COMPLETED"
	KindExecutionFailed    = "EXECUTION_FAILED"
	KindExecutionCancelled = "EXECUTION_CANCELLED"
	KindExecutionContinued = "EXECUTION_CONTINUED" // ended, and goes on as another
	KindExecutionDenied    = "EXECUTION_DENIED"
	KindExecutionMigrated  = "EXECUTION_MIGRATED"
	KindExecutionAnnotated = "EXECUTION_ANNOTATED"
	KindOutcomeRecorded    = "OUTCOME_RECORDED"
	KindStepCompleted      = "STEP_COMPLETED"
	KindStepFailed         = "STEP_FAILED"
	KindMessageReceived    = "MESSAGE_RECEIVED"
	KindMessageConsumed    = "MESSAGE_CONSUMED"

	kernelKindCount = iota
)

// A Class says whether an event past a park answers it.
type Class uint8

const (
	// Answering events end or replace the wait of the park before them: whoever
	// would resume it comes too late.
	Answering Class = iota + 1

	// Ignorable events may follow a park and leave it open.
	Ignorable
)

// A KernelKind is a kernel kind and its class.
type KernelKind struct {
	Kind  string
	Class Class
}

// kernelKinds has the length that the constants above count to, and its rows have
// no optional part: a kernel kind without a class does not compile.
var kernelKinds [kernelKindCount]KernelKind = [...]KernelKind{
	{KindExecutionStarted, Ignorable},
	{KindExecutionSuspended, Answering}, // a later park supersedes an earlier one
	{KindExecutionResumed, Answering},
	{KindExecutionCompleted, Answering},
	{KindExecutionFailed, Answering},
	{KindExecutionCancelled, Answering},
	{KindExecutionContinued, Answering},
	{KindExecutionDenied, Ignorable},
	{KindExecutionMigrated, Ignorable},
	{KindExecutionAnnotated, Ignorable},
	{KindOutcomeRecorded, Ignorable},
	{KindStepCompleted, Ignorable},
	{KindStepFailed, Ignorable},
	{KindMessageReceived, Ignorable},
	{KindMessageConsumed, Ignorable}, // it never lands without the resume that answers
}

var kernelClass = func() map[string]Class {
	classes := make(map[string]Class, len(kernelKinds))
	for _, k := range kernelKinds {
		classes[k.Kind] = k.Class
	}
	return classes
}()

// KernelKinds returns every kernel kind with its class, for backends that put the
// table into a query.
func KernelKinds() []KernelKind { return append([]KernelKind(nil), kernelKinds[:]...) }

// IsAnswering reports whether an event answers a park before it. A kernel kind is
// what the table says. Any other kind is the application's and ignorable, else an
// application that emits while it is parked could never be resumed; except that
// one stamped kernel was written by a newer node and counts as answering, which
// costs a retry at worst.
func IsAnswering(kind string, kernel bool) bool {
	if class, known := kernelClass[kind]; known {
		return class == Answering
	}
	return kernel
}
