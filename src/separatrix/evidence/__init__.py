"""What training shows, and what it does not: the protocol, intervals, and a sentence for each mechanism."""

from separatrix.evidence.found import Learned, MechanismEvidence
from separatrix.evidence.plans import learn_plan
from separatrix.evidence.protocol import learn
from separatrix.evidence.sentences import Word

__all__ = ["Learned", "MechanismEvidence", "Word", "learn", "learn_plan"]
