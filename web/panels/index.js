/* All kinds of panels; each file registers its own. */
import './control.js';
import './chart.js';
import './accuracy.js';
